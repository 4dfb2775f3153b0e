//! What comes before picking: every binding has the apply strategy of its placement, and no
//! cluster has two bindings.

use std::collections::BTreeMap;

use crate::dialect::fleet::read::binding::{Binding, State};
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::write::binding as write;
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// What two bindings of one cluster mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shared<'w> {
    /// The old one has to be gone before the new one may begin.
    Wait { binding: &'w str, behind: &'w str },
    /// This cannot come about by itself; someone has to look.
    Error { detail: String },
}

/// Patches for the bindings whose apply strategy is not the placement's.
pub fn push_apply_strategy(placement: &Placement<'_>, bindings: &[Binding<'_>]) -> Vec<Action> {
    let wanted = &placement.apply_strategy;
    let stale = bindings
        .iter()
        .filter(|binding| !binding.is_deleting() && !write::has_strategy(binding, wanted));
    stale
        .map(|binding| {
            let strategy = write::strategy_patch(binding, wanted);
            let why = Why::new("ApplyStrategyChanged", "the placement's apply strategy changed");
            let patch = nested(&["spec", "applyStrategy"], strategy);
            Action::patch(Verb::Record, binding.object, patch, why)
        })
        .collect()
}

/// Whether some cluster has more than one binding; errors outrank waiting.
pub fn shared_cluster<'w>(bindings: &[Binding<'w>]) -> Option<Shared<'w>> {
    if bindings.is_sorted_by(|one, next| one.cluster() < next.cluster()) {
        return None; // as they mostly come: each is about another cluster
    }
    let mut leaving: BTreeMap<&str, &str> = BTreeMap::new();
    let mut live: BTreeMap<&str, Binding<'w>> = BTreeMap::new();
    for binding in bindings.iter().copied() {
        let cluster = binding.cluster();
        if binding.is_deleting() {
            leaving.insert(cluster, binding.name());
        } else if let Some(other) = live.insert(cluster, binding) {
            let (one, two) = (other.name(), binding.name());
            let detail = format!("cluster {cluster:?} has two bindings, {one} and {two}");
            return Some(Shared::Error { detail });
        }
    }
    let mut wait = None;
    for (cluster, binding) in live {
        let Some(behind) = leaving.get(cluster).copied() else { continue };
        let placed = binding.state == State::Bound
            || binding.state == State::Unscheduled && binding.was_bound();
        if placed {
            let name = binding.name();
            let detail = format!(
                "cluster {cluster:?} has binding {name} bound while {behind} is being deleted"
            );
            return Some(Shared::Error { detail });
        }
        wait = wait.or(Some(Shared::Wait { binding: binding.name(), behind }));
    }
    wait
}

#[cfg(test)]
mod tests {
    use convoy_api::Object;
    use serde_json::json;

    use super::*;

    fn binding(name: &str, state: &str, deleting: bool) -> Object {
        let mut raw = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "ClusterResourceBinding", "metadata": {"name": name},
            "spec": {"state": state, "targetCluster": "c1"}});
        if deleting {
            raw["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Object::from_value(raw).unwrap()
    }

    #[test]
    fn one_cluster_has_one_binding() {
        let old = binding("old", "Unscheduled", true);
        let cases = [
            ("alone", vec![&old], "none"),
            ("picked again", vec![&old], "wait"),
            ("bound too early", vec![&old], "error"),
        ];
        let scheduled = binding("new", "Scheduled", false);
        let bound = binding("new", "Bound", false);
        for (name, mut objects, want) in cases {
            match want {
                "wait" => objects.push(&scheduled),
                "error" => objects.push(&bound),
                _ => {}
            }
            let bindings: Vec<_> =
                objects.into_iter().map(|object| Binding::read(object).unwrap()).collect();
            let got = match shared_cluster(&bindings) {
                None => "none",
                Some(Shared::Wait { behind: "old", binding: "new" }) => "wait",
                Some(Shared::Wait { .. }) => "wrong names",
                Some(Shared::Error { .. }) => "error",
            };
            assert_eq!(got, want, "{name}");
        }
        let pair = [Binding::read(&scheduled).unwrap(), Binding::read(&bound).unwrap()];
        assert!(matches!(shared_cluster(&pair), Some(Shared::Error { .. })));
    }
}
