//! The resources of a cluster: those of its nodes, added up by name.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::field;
use convoy_api::text::Quantity;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

use crate::resources::quantity;

/// What the nodes have, as `status.capacity` and `status.allocatable` of a managed cluster.
/// Nothing can be scheduled to a cordoned node, so what it has is not allocatable.
pub(crate) fn resources(nodes: &[&Object]) -> (Map<String, Value>, Map<String, Value>) {
    let is_open = |node: &&&Object| field(node.spec(), "unschedulable").as_bool() != Some(true);
    let open: Vec<&Object> = nodes.iter().filter(is_open).copied().collect();
    (total(nodes, "capacity"), total(&open, "allocatable"))
}

/// An amount, and whether it is written in powers of two.
#[derive(Clone, Copy, Default)]
struct Total {
    amount: Quantity,
    is_binary: bool,
}

fn total(nodes: &[&Object], member: &str) -> Map<String, Value> {
    let mut totals: BTreeMap<SmolStr, Total> = BTreeMap::new();
    for (name, value) in
        nodes.iter().filter_map(|node| node.status().get(member)?.as_object()).flatten()
    {
        let Some(amount) = quantity(value) else { continue };
        let total = totals.entry(SmolStr::new(name)).or_default();
        total.amount = total.amount.saturating_add(amount);
        total.is_binary |= value.as_str().is_some_and(|text| text.ends_with('i'));
    }
    totals.into_iter().map(|(name, total)| (name.to_string(), json!(total.shown()))).collect()
}

impl Total {
    /// | sum             | shown     |
    /// |-----------------|-----------|
    /// | 4 + 1500m       | 5500m     |
    /// | 8Gi + 1Mi       | 8389632Ki |
    /// | 110 + 110       | 220       |
    fn shown(self) -> String {
        const NANOS: i128 = 1_000_000_000;
        let units = self.amount.as_units();
        if self.amount.as_nanos() % NANOS != 0 {
            return format!("{}m", self.amount.as_millis());
        }
        if self.is_binary && units != 0 && units % 1024 == 0 {
            return format!("{}Ki", units / 1024);
        }
        units.to_string()
    }
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;

    use super::*;

    #[test]
    fn nodes_add_up_and_cordoned_ones_offer_nothing() {
        let node = |name: &str, cpu: &str, memory: &str, cordoned: bool| {
            let amounts = json!({"cpu": cpu, "memory": memory, "pods": "110"});
            object("v1", "Node", name)
                .spec(json!({"unschedulable": cordoned}))
                .status(json!({"capacity": amounts, "allocatable": amounts}))
                .build()
        };
        let nodes = [node("a", "4", "8Gi", false), node("b", "1500m", "1Mi", true)];
        let (capacity, allocatable) = resources(&[&nodes[0], &nodes[1]]);
        assert_eq!(
            Value::Object(capacity),
            json!({"cpu": "5500m", "memory": "8389632Ki", "pods": "220"})
        );
        assert_eq!(
            Value::Object(allocatable),
            json!({"cpu": "4", "memory": "8388608Ki", "pods": "110"})
        );
        assert!(resources(&[]).0.is_empty());
    }
}
