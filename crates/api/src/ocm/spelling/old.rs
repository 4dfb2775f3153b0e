//! Where objects use old spellings, and what they are today, so that people can be told.

use serde_json::Value;

use super::super::names::{GROUP_INDEX_LABELS, GROUP_NAME_LABELS};
use crate::object::Object;
use crate::object::member::{field, list};

/// A path, and today's spelling of what stands there.
type Found = Vec<(String, &'static str)>;

/// The old spellings that a Placement uses.
pub fn old_in_placement(placement: &Object) -> Found {
    let mut found = Vec::new();
    let spec = placement.spec();
    if spec.get("DecisionStrategy").is_some() {
        found.push(("spec.DecisionStrategy".to_owned(), "decisionStrategy"));
    }
    for name in ["decisionStrategy", "DecisionStrategy"] {
        in_strategy(&format!("spec.{name}"), field(spec, name), &mut found);
    }
    for (index, predicate) in list(spec, "predicates").iter().enumerate() {
        let at = format!("spec.predicates[{index}].requiredClusterSelector");
        in_cluster_selector(&at, field(predicate, "requiredClusterSelector"), &mut found);
    }
    for (index, group) in list(placement.status(), "decisionGroups").iter().enumerate() {
        if group.get("placementDecisions").is_some() {
            let at = format!("status.decisionGroups[{index}].placementDecisions");
            found.push((at, "decisions"));
        }
    }
    found
}

/// The old labels of a `PlacementDecision`.
pub fn old_in_decision(decision: &Object) -> Found {
    let labels = [GROUP_INDEX_LABELS, GROUP_NAME_LABELS];
    let old = labels.into_iter().filter(|[_, old]| decision.label(old).is_some());
    old.map(|[now, old]| (format!("metadata.labels[{old}]"), now)).collect()
}

/// The old operators of the selector that stands at `at`.
pub fn old_in_selector(at: &str, selector: &Value) -> Found {
    let mut found = Vec::new();
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        if field(expression, "operator").as_str() == Some("Exist") {
            found.push((format!("{at}.matchExpressions[{index}].operator"), "Exists"));
        }
    }
    found
}

fn in_strategy(at: &str, strategy: &Value, found: &mut Found) {
    for (name, now) in [
        ("clustersPerDecisionGroup", "groupStrategy.clustersPerDecisionGroup"),
        ("decisionGroups", "groupStrategy.decisionGroups"),
        ("DecisionGroups", "groupStrategy.decisionGroups"),
    ] {
        if strategy.get(name).is_some() {
            found.push((format!("{at}.{name}"), now));
        }
    }
    let below = field(strategy, "groupStrategy");
    let nested = format!("{at}.groupStrategy");
    for (at, holder) in [(at, strategy), (nested.as_str(), below)] {
        if field(holder, "clustersPerDecisionGroup").as_str() == Some("None") {
            found.push((format!("{at}.clustersPerDecisionGroup"), "100%"));
        }
        for name in ["decisionGroups", "DecisionGroups"] {
            for (index, group) in list(holder, name).iter().enumerate() {
                in_group(&format!("{at}.{name}[{index}]"), group, found);
            }
        }
    }
}

fn in_group(at: &str, group: &Value, found: &mut Found) {
    if group.get("GroupName").is_some() {
        found.push((format!("{at}.GroupName"), "groupName"));
    }
    if let Some(selector) = group.get("clusterSelector") {
        let at = format!("{at}.clusterSelector");
        found.push((at.clone(), "groupClusterSelector.labelSelector"));
        found.extend(old_in_selector(&at, selector));
    }
    let at = format!("{at}.groupClusterSelector");
    in_cluster_selector(&at, field(group, "groupClusterSelector"), found);
}

fn in_cluster_selector(at: &str, selector: &Value, found: &mut Found) {
    for part in ["labelSelector", "claimSelector"] {
        found.extend(old_in_selector(&format!("{at}.{part}"), field(selector, part)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn placement(spec: Value) -> Object {
        Object::from_value(json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement", "metadata": {"name": "p", "namespace": "n"}, "spec": spec,
            "status": {"decisionGroups": [{"placementDecisions": ["p-decision-1"]}]}}))
        .expect("an object")
    }

    #[test]
    fn every_old_spelling_of_the_seed_is_told() {
        let exist = json!({"matchExpressions": [{"key": "west", "operator": "Exist"}]});
        let seed = placement(json!({
            "DecisionStrategy": {"clustersPerDecisionGroup": "None", "DecisionGroups": [
                {"GroupName": "west", "clusterSelector": exist}]},
            "predicates": [{"requiredClusterSelector": {"claimSelector": exist}}]}));
        let strategy = "spec.DecisionStrategy";
        let group = "spec.DecisionStrategy.DecisionGroups[0]";
        let claims = "spec.predicates[0].requiredClusterSelector.claimSelector";
        let expected = [
            (strategy.to_owned(), "decisionStrategy"),
            (
                format!("{strategy}.clustersPerDecisionGroup"),
                "groupStrategy.clustersPerDecisionGroup",
            ),
            (format!("{strategy}.DecisionGroups"), "groupStrategy.decisionGroups"),
            (format!("{strategy}.clustersPerDecisionGroup"), "100%"),
            (format!("{group}.GroupName"), "groupName"),
            (format!("{group}.clusterSelector"), "groupClusterSelector.labelSelector"),
            (format!("{group}.clusterSelector.matchExpressions[0].operator"), "Exists"),
            (format!("{claims}.matchExpressions[0].operator"), "Exists"),
            ("status.decisionGroups[0].placementDecisions".to_owned(), "decisions"),
        ];
        assert_eq!(old_in_placement(&seed), expected);
    }

    #[test]
    fn old_labels_of_decisions_are_told() {
        let decision = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "PlacementDecision", "metadata": {"name": "p", "namespace": "n", "labels":
                {"cluster.open-cluster-management.io/decisiongroupindex": "0"}}});
        let found = old_in_decision(&Object::from_value(decision).expect("an object"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, GROUP_INDEX_LABELS[0]);
    }

    #[test]
    fn anything_may_stand_in_a_spec() {
        for odd in [
            json!(null),
            json!([1]),
            json!({"decisionStrategy": 3, "predicates": {"a": 1}}),
            json!({"decisionStrategy": {"groupStrategy": "x", "decisionGroups": [7]}}),
        ] {
            _ = old_in_placement(&placement(odd));
        }
    }
}
