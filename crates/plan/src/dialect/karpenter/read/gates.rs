//! Upstream's feature gates, as far as they concern what is done here.

/// Which features are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// Nodes that stay unhealthy are deleted.
    pub node_repair: bool,
    /// Spot nodes are replaced by cheaper spot nodes.
    pub spot_to_spot_consolidation: bool,
    /// Pools with `spec.replicas` get that many nodes. Off upstream.
    pub static_capacity: bool,
}

impl Gates {
    /// The names that [`Gates::set`] takes.
    pub const NAMES: [&'static str; 6] = [
        "NodeRepair",
        "SpotToSpotConsolidation",
        "StaticCapacity",
        "ReservedCapacity",
        "NodeOverlay",
        "CapacityBuffer",
    ];

    pub const fn new() -> Self {
        Self { node_repair: false, spot_to_spot_consolidation: false, static_capacity: true }
    }

    /// Sets a gate by upstream's name; whether it can be so.
    pub fn set(&mut self, name: &str, is_on: bool) -> bool {
        match name {
            "NodeRepair" => self.node_repair = is_on,
            "SpotToSpotConsolidation" => self.spot_to_spot_consolidation = is_on,
            "StaticCapacity" => self.static_capacity = is_on,
            // The provider has no reserved machines, so that both are the same.
            "ReservedCapacity" => {}
            // Not built: they are off, whoever says so.
            "NodeOverlay" | "CapacityBuffer" if !is_on => {}
            _ => return false,
        }
        true
    }
}

impl Default for Gates {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_have_upstreams_names() {
        for name in Gates::NAMES {
            assert!(Gates::new().set(name, false), "{name}");
        }
        let mut gates = Gates::new();
        assert!(gates.set("NodeRepair", true) && gates.node_repair);
        assert!(gates.set("StaticCapacity", false) && !gates.static_capacity);
        for (name, is_on) in [("NodeOverlay", true), ("nodeRepair", true), ("", false)] {
            assert!(!gates.set(name, is_on), "{name}");
        }
    }
}
