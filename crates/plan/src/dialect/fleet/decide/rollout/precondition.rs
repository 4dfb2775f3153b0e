//! What has to be so before anything rolls: every binding has the apply strategy of its placement, and no
//! cluster has two bindings.

use std::collections::BTreeMap;

use crate::dialect::fleet::read::binding::Binding;
use crate::dialect::fleet::read::placement::Placement;

/// What two bindings of one cluster mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SharedCluster<'w> {
    /// The old one has to be gone before the new one may begin.
    Wait { binding: &'w str, behind: &'w str },
    /// No controller does this; a person has to delete one of them.
    Error { detail: String },
}

/// The bindings whose apply strategy is not the placement's.
pub(crate) fn without_apply_strategy<'w>(
    placement: &Placement<'_>,
    bindings: &[Binding<'w>],
) -> Vec<Binding<'w>> {
    let wanted = &placement.apply_strategy;
    let stale = bindings.iter().copied();
    stale.filter(|binding| !binding.is_deleting() && !binding.has_strategy(wanted)).collect()
}

/// Whether some cluster has more than one binding; errors outrank waiting.
pub(crate) fn shared_cluster<'w>(bindings: &[Binding<'w>]) -> Option<SharedCluster<'w>> {
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
            return Some(SharedCluster::Error { detail });
        }
    }
    let mut wait = None;
    for (cluster, binding) in live {
        let Some(behind) = leaving.get(cluster).copied() else { continue };
        if binding.is_placed() {
            let name = binding.name();
            let detail = format!(
                "cluster {cluster:?} has binding {name} bound while {behind} is being deleted"
            );
            return Some(SharedCluster::Error { detail });
        }
        wait = wait.or(Some(SharedCluster::Wait { binding: binding.name(), behind }));
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
                Some(SharedCluster::Wait { behind: "old", binding: "new" }) => "wait",
                Some(SharedCluster::Wait { .. }) => "wrong names",
                Some(SharedCluster::Error { .. }) => "error",
            };
            assert_eq!(got, want, "{name}");
        }
        let pair = [Binding::read(&scheduled).unwrap(), Binding::read(&bound).unwrap()];
        assert!(matches!(shared_cluster(&pair), Some(SharedCluster::Error { .. })));
    }
}
