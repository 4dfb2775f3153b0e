//! Writes to bindings, by rolling updates and by staged update runs.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::dialect::fleet::names::ROLLOUT_STARTED;
use crate::dialect::fleet::read::binding::{Binding, DesiredBinding};
use crate::dialect::fleet::read::placement::field;
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// The patch that makes a binding Bound and as desired.
pub(crate) fn bound(
    desired: &DesiredBinding<'_>,
    binding: &Binding<'_>,
    verb: Verb,
    why: Why,
) -> Action {
    let mut spec = Map::new();
    spec.insert("state".into(), json!("Bound"));
    spec.insert("resourceSnapshotName".into(), json!(desired.resource_snapshot));
    spec.insert("resourceOverrideSnapshots".into(), desired.overrides.namespaced_json());
    spec.insert("clusterResourceOverrideSnapshots".into(), desired.overrides.cluster_json());
    if let Some(wanted) = desired.apply_strategy {
        spec.insert("applyStrategy".into(), strategy_patch(binding, wanted));
    }
    Action::patch(verb, binding.object, nested(&["spec"], Value::Object(spec)), why)
}

/// The merge patch that makes the binding's apply strategy `wanted`: what it has beyond goes.
pub(crate) fn strategy_patch(binding: &Binding<'_>, wanted: &Value) -> Value {
    let carried = field(binding.object.spec(), "applyStrategy").as_object();
    let mut patch: Map<String, Value> =
        carried.into_iter().flatten().map(|(name, _)| (name.clone(), Value::Null)).collect();
    for (name, value) in wanted.as_object().into_iter().flatten() {
        patch.insert(name.clone(), value.clone());
    }
    Value::Object(patch)
}

/// `RolloutStarted` as it should read at `generation`; None if it reads so already.
pub(crate) fn rollout_started(
    binding: &Binding<'_>,
    started: bool,
    generation: i64,
    message: &str,
    now: Timestamp,
) -> Option<Action> {
    let (status, reason) =
        if started { ("True", "RolloutStarted") } else { ("False", "RolloutNotStartedYet") };
    let wanted = Condition::new(ROLLOUT_STARTED, status, reason, message).of_generation(generation);
    let conditions = condition::with(binding.conditions(), &wanted, now)?;
    let why = Why::new(reason, message);
    let patch = nested(&["status", "conditions"], Value::Array(conditions));
    Some(Action::patch_status(Verb::Record, binding.object, patch, why))
}

#[cfg(test)]
mod tests {
    use convoy_api::Object;

    use super::*;

    #[test]
    fn a_strategy_patch_takes_away_what_is_not_wanted() {
        let object = Object::from_value(json!({"apiVersion": "placement.kubernetes-fleet.io/v1",
            "kind": "ClusterResourceBinding", "metadata": {"name": "b"},
            "spec": {"state": "Bound", "applyStrategy": {"type": "x", "allowCoOwnership": true}}}))
        .unwrap();
        let binding = Binding::read(&object).unwrap();
        let patch = strategy_patch(&binding, &json!({"type": "y"}));
        assert_eq!(patch, json!({"type": "y", "allowCoOwnership": null}));
    }
}
