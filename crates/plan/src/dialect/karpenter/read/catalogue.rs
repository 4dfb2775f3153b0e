//! The instance types of the simulated provider: 12 sizes, 3 families, 2 architectures, 2
//! operating systems, each in four zones, on demand and spot.

use std::sync::LazyLock;

use smol_str::{SmolStr, format_smolstr};

use crate::dialect::karpenter::names::{label, node_label};
use crate::resources::Amounts;

/// A kind of machine.
#[derive(Clone, Debug)]
pub(crate) struct InstanceType {
    pub(crate) name: SmolStr,
    pub(crate) cpu: i64,
    pub(crate) memory_gib: i64,
    pub(crate) arch: &'static str,
    pub(crate) os: &'static str,
    family: &'static str,
    /// Also the value of the label for its size.
    cpu_text: SmolStr,
    memory_text: SmolStr,
    on_demand: f64,
}

/// Where and how a machine is rented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offering {
    pub(crate) zone: &'static str,
    pub(crate) capacity_type: &'static str,
}

pub(crate) const ZONES: [&str; 4] = ["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"];
pub(crate) const SPOT: &str = "spot";
pub(crate) const ON_DEMAND: &str = "on-demand";
const SIZES: [i32; 12] = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256];
const FAMILIES: [(&str, i32); 3] = [("c", 2), ("s", 4), ("m", 8)];
const GIB: i64 = 1 << 30;

/// What the kubelet keeps for itself.
const RESERVED_CPU_MILLIS: i64 = 100;
const RESERVED_MEMORY_BYTES: i64 = 10 << 20;

static ALL: LazyLock<Vec<InstanceType>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for cpu in SIZES {
        for (family, factor) in FAMILIES {
            for os in ["linux", "windows"] {
                for arch in ["amd64", "arm64"] {
                    all.push(InstanceType::new(cpu, family, cpu * factor, os, arch));
                }
            }
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
});

/// Every type, by name.
pub(crate) fn all() -> &'static [InstanceType] {
    &ALL
}

pub(crate) fn find(name: &str) -> Option<&'static InstanceType> {
    let at = ALL.binary_search_by(|known| known.name.as_str().cmp(name)).ok()?;
    Some(&ALL[at])
}

/// Remembers the last type that was asked for: nodes of one pool are mostly alike.
#[derive(Debug, Default)]
pub(crate) struct Lookup<'n> {
    last: Option<(&'n str, Option<&'static InstanceType>)>,
}

impl<'n> Lookup<'n> {
    pub(crate) fn find(&mut self, name: &'n str) -> Option<&'static InstanceType> {
        match self.last {
            Some((known, found)) if known == name => found,
            _ => {
                let found = find(name);
                self.last = Some((name, found));
                found
            }
        }
    }
}

impl InstanceType {
    fn new(
        cpu: i32,
        family: &'static str,
        memory_gib: i32,
        os: &'static str,
        arch: &'static str,
    ) -> Self {
        let bytes = f64::from(memory_gib) * f64::from(1 << 30);
        Self {
            name: format_smolstr!("{family}-{cpu}x-{arch}-{os}"),
            cpu: i64::from(cpu),
            memory_gib: i64::from(memory_gib),
            arch,
            os,
            family,
            cpu_text: format_smolstr!("{cpu}"),
            memory_text: memory_text(memory_gib),
            on_demand: 0.025 * f64::from(cpu) + 0.001 * bytes / 1e9,
        }
    }

    /// What it costs per hour; absent for a capacity type that is not offered.
    pub(crate) fn price(&self, capacity_type: &str) -> Option<f64> {
        match capacity_type {
            ON_DEMAND => Some(self.on_demand),
            SPOT => Some(self.on_demand * 0.7),
            _ => None,
        }
    }

    /// What pods get of it.
    pub(crate) fn allocatable(&self) -> Amounts {
        let (cpu, memory) = (self.allocatable_cpu_millis(), self.allocatable_memory());
        Amounts::new(cpu, memory, Self::storage(), self.pods())
    }

    pub(crate) fn allocatable_cpu_millis(&self) -> i64 {
        self.cpu * 1_000 - RESERVED_CPU_MILLIS
    }

    pub(crate) fn allocatable_memory(&self) -> i64 {
        self.memory_gib * GIB - RESERVED_MEMORY_BYTES
    }

    pub(crate) fn pods(&self) -> i64 {
        (self.cpu * 16).min(1_024)
    }

    pub(crate) const fn storage() -> i64 {
        20 * GIB
    }

    /// A label that a node of this type, rented so, has from the provider.
    pub(crate) fn label(&self, offering: Offering, key: &str) -> Option<&str> {
        Some(match key {
            label::INSTANCE_TYPE => &self.name,
            label::ZONE => offering.zone,
            label::CAPACITY_TYPE => offering.capacity_type,
            node_label::ARCH => self.arch,
            node_label::OS => self.os,
            node_label::INSTANCE_FAMILY => self.family,
            node_label::INSTANCE_SIZE | node_label::INSTANCE_CPU => &self.cpu_text,
            node_label::INSTANCE_MEMORY => &self.memory_text,
            _ => return None,
        })
    }
}

/// Memory as the provider's labels have it: in Ti where that comes out even.
///
/// |  GiB | text   |
/// |-----:|--------|
/// |    2 | 2Gi    |
/// | 1024 | 1Ti    |
/// | 1536 | 1536Gi |
fn memory_text(gib: i32) -> SmolStr {
    if gib % 1_024 == 0 { format_smolstr!("{}Ti", gib / 1_024) } else { format_smolstr!("{gib}Gi") }
}

/// Every way to rent a machine.
pub(crate) fn offerings() -> impl Iterator<Item = Offering> {
    let of_zone = |zone| {
        [ON_DEMAND, SPOT].into_iter().map(move |capacity_type| Offering { zone, capacity_type })
    };
    ZONES.into_iter().flat_map(of_zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_that_of_the_simulated_provider() {
        assert_eq!(all().len(), 144);
        let small = find("s-4x-amd64-linux").unwrap();
        assert_eq!(small.allocatable_cpu_millis(), 3_900);
        assert_eq!(small.allocatable_memory(), 16_374 << 20);
        assert_eq!(small.pods(), 64);
        let price = small.price(ON_DEMAND).unwrap();
        assert!((price - 0.117_179_869_184).abs() < 1e-12, "{price}");
        assert_eq!(find("s-5x-amd64-linux").map(|found| &found.name), None);
    }

    #[test]
    fn machines_have_the_labels_of_the_simulated_provider() {
        let offering = Offering { zone: ZONES[0], capacity_type: ON_DEMAND };
        let cases = [
            ("c-16x-arm64-linux", ["c", "16", "16", "32Gi"]),
            ("m-128x-amd64-linux", ["m", "128", "128", "1Ti"]),
            ("m-192x-amd64-linux", ["m", "192", "192", "1536Gi"]),
        ];
        for (name, expected) in cases {
            let kind = find(name).unwrap();
            let keys = [
                node_label::INSTANCE_FAMILY,
                node_label::INSTANCE_SIZE,
                node_label::INSTANCE_CPU,
                node_label::INSTANCE_MEMORY,
            ];
            let labels = keys.map(|key| kind.label(offering, key).unwrap());
            assert_eq!(labels, expected, "{name}");
        }
    }
}
