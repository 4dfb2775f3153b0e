//! Old spellings, brought to today's. Stored objects stay as they were written; whoever
//! decides reads them through these functions. Where both spellings of one thing are
//! present, today's wins.

mod old;

use serde_json::{Map, Value};

pub use self::old::{old_in_decision, old_in_placement, old_in_selector};
use super::names::{GROUP_INDEX_LABELS, GROUP_NAME_LABELS};
use crate::object::Object;

/// `spec` of a Placement with every field under its present name.
///
/// | written                                        | read as                             |
/// |------------------------------------------------|-------------------------------------|
/// | `DecisionStrategy`                             | `decisionStrategy`                  |
/// | its `clustersPerDecisionGroup`, `DecisionGroups` | those of its `groupStrategy`      |
/// | `GroupName`, `clusterSelector` of a group      | `groupName`, `groupClusterSelector.labelSelector` |
/// | `clustersPerDecisionGroup: None`               | `100%`                              |
/// | operator `Exist`                               | `Exists`                            |
pub fn placement_spec(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else { return spec };
    rename(fields, "DecisionStrategy", "decisionStrategy");
    if let Some(strategy) = fields.get_mut("decisionStrategy").and_then(Value::as_object_mut) {
        decision_strategy(strategy);
    }
    let predicates = fields.get_mut("predicates").and_then(Value::as_array_mut);
    for predicate in predicates.into_iter().flatten() {
        if let Some(required) = predicate.get_mut("requiredClusterSelector") {
            cluster_selector(required);
        }
    }
    spec
}

/// A label or claim selector whose operators are today's.
pub fn selector(selector: &Value) -> Value {
    let mut selector = selector.clone();
    operators(&mut selector);
    selector
}

/// The group number and name that a `PlacementDecision` carries.
pub fn decision_group(decision: &Object) -> (Option<&str>, &str) {
    let label = |keys: [&str; 2]| keys.iter().find_map(|key| decision.label(key));
    (label(GROUP_INDEX_LABELS), label(GROUP_NAME_LABELS).unwrap_or_default())
}

fn decision_strategy(strategy: &mut Map<String, Value>) {
    rename(strategy, "DecisionGroups", "decisionGroups");
    let lifted = ["clustersPerDecisionGroup", "decisionGroups"];
    let lifted = lifted.map(|key| (key, strategy.shift_remove(key)));
    if lifted.iter().any(|(_, value)| value.is_some()) {
        let below = strategy.entry("groupStrategy").or_insert_with(|| Value::Object(Map::new()));
        for (key, value) in lifted {
            if let (Some(below), Some(value)) = (below.as_object_mut(), value) {
                below.entry(key).or_insert(value);
            }
        }
    }
    let Some(groups) = strategy.get_mut("groupStrategy").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(length) = groups.get_mut("clustersPerDecisionGroup")
        && length.as_str() == Some("None")
    {
        *length = Value::String("100%".to_owned());
    }
    let named = groups.get_mut("decisionGroups").and_then(Value::as_array_mut);
    for group in named.into_iter().flatten().filter_map(Value::as_object_mut) {
        decision_group_entry(group);
    }
}

fn decision_group_entry(group: &mut Map<String, Value>) {
    rename(group, "GroupName", "groupName");
    if let Some(labels) = group.shift_remove("clusterSelector") {
        let selector = || Value::Object(Map::from_iter([("labelSelector".to_owned(), labels)]));
        group.entry("groupClusterSelector").or_insert_with(selector);
    }
    if let Some(selector) = group.get_mut("groupClusterSelector") {
        cluster_selector(selector);
    }
}

fn cluster_selector(selector: &mut Value) {
    for part in ["labelSelector", "claimSelector"] {
        if let Some(part) = selector.get_mut(part) {
            operators(part);
        }
    }
}

fn operators(selector: &mut Value) {
    let expressions = selector.get_mut("matchExpressions").and_then(Value::as_array_mut);
    for expression in expressions.into_iter().flatten() {
        if let Some(operator) = expression.get_mut("operator")
            && operator.as_str() == Some("Exist")
        {
            *operator = Value::String("Exists".to_owned());
        }
    }
}

/// Moves `old` to `new` unless `new` is there already; `old` goes either way.
fn rename(fields: &mut Map<String, Value>, old: &str, new: &str) {
    if let Some(value) = fields.shift_remove(old) {
        fields.entry(new).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_seed_is_read_as_todays_placement() {
        let seed = json!({"DecisionStrategy": {"clustersPerDecisionGroup": 150, "DecisionGroups": [
            {"GroupName": "west", "clusterSelector":
                {"matchExpressions": [{"key": "west", "operator": "Exist"}]}}]}});
        let today = json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 150,
            "decisionGroups": [{"groupName": "west", "groupClusterSelector": {"labelSelector":
                {"matchExpressions": [{"key": "west", "operator": "Exists"}]}}}]}}});
        assert_eq!(placement_spec(&seed), today);
        assert_eq!(placement_spec(&today), today);
    }

    #[test]
    fn of_two_spellings_todays_wins() {
        let both = json!({
            "DecisionStrategy": {"clustersPerDecisionGroup": 1},
            "decisionStrategy": {"clustersPerDecisionGroup": 2,
                "groupStrategy": {"clustersPerDecisionGroup": "None"}}});
        let read = json!({"decisionStrategy": {"groupStrategy":
            {"clustersPerDecisionGroup": "100%"}}});
        assert_eq!(placement_spec(&both), read);
    }

    #[test]
    fn anything_may_stand_in_a_spec() {
        for odd in [
            json!(null),
            json!([1]),
            json!({"decisionStrategy": 3}),
            json!({"decisionStrategy": {"groupStrategy": "x", "decisionGroups": [7]}}),
        ] {
            _ = placement_spec(&odd);
        }
    }
}
