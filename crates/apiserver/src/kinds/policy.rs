//! Disruption budgets, leases, priorities: small kinds with few rules.

use serde_json::Value;

use super::at::{At, Errors};
use super::count::{at_most_all, count_or_percent};
use super::kind::{Change, Kind};
use super::selector;
use crate::column::Cell::Text;
use crate::column::{AGE, Column, NAME, number, string};

const USER_PRIORITY_MAX: i64 = 1_000_000_000;

/// The priorities of the system itself.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(super) fn disruption_budget(object: &Value) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if !least.is_absent() && !most.is_absent() {
        let names = ["minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"];
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(spec.invalid_struct(&names, detail));
    }
    for amount in [&least, &most].into_iter().filter(|amount| !amount.is_absent()) {
        count_or_percent(amount, &mut errors);
        at_most_all(amount, &mut errors);
    }
    selector::validate(&spec.get("selector"), &mut errors);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    spec.get("unhealthyPodEvictionPolicy").one_of_if_given(&policies, &mut errors);
    errors
}

pub(super) fn lease(object: &Value) -> Errors {
    let spec = At::root(object).get("spec");
    let mut errors = Errors::new();
    let duration = spec.get("leaseDurationSeconds");
    if duration.integer().is_some_and(|seconds| seconds <= 0) {
        errors.push(duration.invalid("must be greater than 0"));
    }
    spec.get("leaseTransitions").not_negative(&mut errors);
    if !spec.get("preferredHolder").is_empty() && spec.get("strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(spec.get("preferredHolder").forbidden(detail));
    }
    errors
}

pub(super) fn priority_class(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let mut errors = Errors::new();
    let (name, value) = (root.get("metadata.name"), root.get("value"));
    if let Some(old) = old {
        if value.value != &old["value"] {
            errors.push(value.forbidden("may not be changed in an update."));
        }
        root.get("preemptionPolicy").immutable(&At::root(old).get("preemptionPolicy"), &mut errors);
        return errors;
    }
    if name.text().starts_with("system-") {
        if let Some(why) = not_of_system(&root) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            errors.push(name.forbidden(&detail));
        }
    } else if value.integer().is_some_and(|value| value > USER_PRIORITY_MAX) {
        let detail =
            format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        errors.push(value.forbidden(&detail));
    }
    root.get("preemptionPolicy").one_of_if_given(&["PreemptLowerPriority", "Never"], &mut errors);
    errors
}

fn not_of_system(root: &At<'_>) -> Option<String> {
    let name = root.get("metadata.name").text();
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if root.get("value").integer() != Some(*value) {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    root.get("globalDefault")
        .is_true()
        .then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

/// The value of a class of the system, which need not be stored to be known.
pub(super) fn system_priority(name: &str) -> Option<i64> {
    SYSTEM_CLASSES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

pub(super) struct DisruptionBudget;

impl Kind for DisruptionBudget {
    fn validate(&self, change: &Change<'_>) -> Errors {
        disruption_budget(change.object)
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                NAME,
                string("Min Available", Text("/spec/minAvailable", "N/A")),
                string("Max Unavailable", Text("/spec/maxUnavailable", "N/A")),
                number("Allowed Disruptions", "/status/disruptionsAllowed"),
                AGE,
            ]
        }
    }
}

pub(super) struct Lease;

impl Kind for Lease {
    fn validate(&self, change: &Change<'_>) -> Errors {
        lease(change.object)
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, string("Holder", Text("/spec/holderIdentity", "")), AGE] }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(errors: Errors) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn budgets_have_one_amount() {
        for (spec, expected) in [
            (json!({"minAvailable": 1}), None),
            (json!({"maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}}), None),
            (
                json!({"minAvailable": "101%"}),
                Some("spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"),
            ),
            (
                json!({"minAvailable": -1}),
                Some("spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"),
            ),
            (
                json!({"unhealthyPodEvictionPolicy": "No"}),
                Some(
                    "spec.unhealthyPodEvictionPolicy: Unsupported value: \"No\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\"",
                ),
            ),
        ] {
            let errors = texts(disruption_budget(&json!({"spec": spec})));
            assert_eq!(errors.first().map(String::as_str), expected, "{spec}");
        }
        let both = json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}});
        assert_eq!(disruption_budget(&both).len(), 1);
    }

    #[test]
    fn leases_count_up() {
        assert!(
            lease(&json!({"spec": {"leaseDurationSeconds": 15, "leaseTransitions": 0}})).is_empty()
        );
        let bad = json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}});
        assert_eq!(
            texts(lease(&bad)),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }

    #[test]
    fn priorities_are_bounded_and_stay() {
        let class = |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value});
        assert!(priority_class(&class("high", USER_PRIORITY_MAX), None).is_empty());
        assert!(priority_class(&class("system-node-critical", 2_000_001_000), None).is_empty());
        for bad in [
            class("high", USER_PRIORITY_MAX + 1),
            class("system-mine", 1),
            class("system-node-critical", 1),
        ] {
            assert_eq!(priority_class(&bad, None).len(), 1, "{bad}");
        }
        let changed = priority_class(&class("a", 2), Some(&class("a", 1)));
        assert_eq!(texts(changed), ["value: Forbidden: may not be changed in an update."]);
    }
}
