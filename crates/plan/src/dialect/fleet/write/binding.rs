//! What is written on bindings, by whoever drives a rollout.

use convoy_api::object::member::same;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::dialect::fleet::read::binding::{Binding, ROLLOUT_STARTED, State};
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::{apply_strategy, field};
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// What a binding's spec should say.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub resource_snapshot: &'a str,
    pub overrides: &'a Applicable,
    /// In canonical form; absent where it is pushed on its own.
    pub apply_strategy: Option<&'a Value>,
}

impl Wish<'_> {
    /// Whether the binding is Bound and says exactly this.
    pub fn is_granted(&self, binding: &Binding<'_>) -> bool {
        let strategy = self.apply_strategy.is_none_or(|wanted| has_strategy(binding, wanted));
        strategy
            && binding.state == State::Bound
            && binding.resource_snapshot() == self.resource_snapshot
            && *self.overrides == Applicable::of_binding(binding.object)
    }

    /// The patch of the spec.
    pub fn grant(&self, binding: &Binding<'_>, verb: Verb, why: Why) -> Action {
        let mut spec = Map::new();
        spec.insert("state".into(), json!("Bound"));
        spec.insert("resourceSnapshotName".into(), json!(self.resource_snapshot));
        spec.insert("resourceOverrideSnapshots".into(), self.overrides.namespaced_json());
        spec.insert("clusterResourceOverrideSnapshots".into(), self.overrides.cluster_json());
        if let Some(wanted) = self.apply_strategy {
            spec.insert("applyStrategy".into(), strategy_patch(binding, wanted));
        }
        Action::patch(verb, binding.object, nested(&["spec"], Value::Object(spec)), why)
    }
}

/// Whether the binding carries this apply strategy, which is in canonical form. One without
/// any does not: whoever makes bindings leaves it to the rollout.
pub fn has_strategy(binding: &Binding<'_>, wanted: &Value) -> bool {
    let carried = field(binding.object.spec(), "applyStrategy");
    // Most say it in the very words.
    !carried.is_null() && (same(carried, wanted) || apply_strategy(carried) == *wanted)
}

/// The merge patch that makes the binding's apply strategy `wanted`: what it has beyond goes.
pub fn strategy_patch(binding: &Binding<'_>, wanted: &Value) -> Value {
    let carried = field(binding.object.spec(), "applyStrategy").as_object();
    let mut patch: Map<String, Value> =
        carried.into_iter().flatten().map(|(name, _)| (name.clone(), Value::Null)).collect();
    for (name, value) in wanted.as_object().into_iter().flatten() {
        patch.insert(name.clone(), value.clone());
    }
    Value::Object(patch)
}

/// `RolloutStarted` as it should read at `generation`; None if it reads so already.
pub fn rollout_started(
    binding: &Binding<'_>,
    started: bool,
    generation: i64,
    message: &str,
    now: Timestamp,
) -> Option<Action> {
    let (status, reason) =
        if started { ("True", "RolloutStarted") } else { ("False", "RolloutNotStartedYet") };
    let wanted = Condition {
        kind: ROLLOUT_STARTED.into(),
        status,
        reason: reason.into(),
        message: message.into(),
        observed_generation: Some(generation),
    };
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
