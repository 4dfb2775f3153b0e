//! Which nodes a pod may run on, by its node selector, its required node affinity and the taints
//! of the node. Shared by whoever places pods and whoever has to know where they could be.

use convoy_api::object::member::{field, list, text};
use convoy_api::well_known::taint::UNSCHEDULABLE;
use serde_json::Value;

use crate::taint::{Taint, Toleration};

/// What a cordoned node counts as.
pub const CORDONED: Taint<'static> = Taint { key: UNSCHEDULABLE, value: "", effect: "NoSchedule" };

/// What a pod asks of the labels and the name of its node.
#[derive(Clone, Copy, Debug)]
pub struct NodeSelector<'p> {
    selector: &'p Value,
    /// Absent: any node. Present: one of the terms must hold.
    required: Option<&'p [Value]>,
}

impl<'p> NodeSelector<'p> {
    /// Reads the spec of a pod.
    pub fn of(spec: &'p Value) -> Self {
        let affinity = field(field(spec, "affinity"), "nodeAffinity");
        let required = field(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
        Self {
            selector: field(spec, "nodeSelector"),
            required: required.is_object().then(|| list(required, "nodeSelectorTerms")),
        }
    }

    /// Whether the node of this name, with the labels that `label` finds, will do.
    pub fn matches<'n>(&self, name: &str, label: impl Fn(&str) -> Option<&'n str>) -> bool {
        let mut selected = self.selector.as_object().into_iter().flatten();
        selected.all(|(key, value)| label(key).is_some() && label(key) == value.as_str())
            && self.required.is_none_or(|terms| terms.iter().any(|term| holds(term, name, &label)))
    }
}

/// Whether a node selector term holds; one that asks for nothing holds for no node.
pub fn holds<'n>(term: &Value, name: &str, label: impl Fn(&str) -> Option<&'n str>) -> bool {
    let (labelled, named) = (list(term, "matchExpressions"), list(term, "matchFields"));
    let part = |expression: &Value| (text(expression, "key") == "metadata.name").then_some(name);
    !(labelled.is_empty() && named.is_empty())
        && labelled.iter().all(|expression| meets(expression, label(text(expression, "key"))))
        && named.iter().all(|expression| meets(expression, part(expression)))
}

/// Node selectors know numbers, which label selectors do not.
fn meets(expression: &Value, value: Option<&str>) -> bool {
    let values = list(expression, "values");
    let is_listed = |value: &str| values.iter().any(|listed| listed == value);
    let number = |text: &str| text.parse::<i64>().ok();
    let numbers = || {
        let bound = values.first().and_then(Value::as_str).and_then(number);
        value.and_then(number).zip(bound)
    };
    match text(expression, "operator") {
        "In" => value.is_some_and(is_listed),
        "NotIn" => !value.is_some_and(is_listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// The first taint of a node, with one of these effects, that nothing tolerates. A cordon counts
/// as a taint.
pub fn intolerable<'n>(
    node: &'n Value,
    tolerations: &[Toleration<'_>],
    effects: &[&str],
) -> Option<Taint<'n>> {
    let cordon = (field(node, "unschedulable") == &Value::Bool(true)).then_some(CORDONED);
    let taints = cordon.into_iter().chain(list(node, "taints").iter().map(Taint::from_value));
    let tolerated =
        |taint: &Taint<'_>| tolerations.iter().any(|toleration| toleration.tolerates(taint));
    let mut hard = taints.filter(|taint| effects.contains(&taint.effect));
    hard.find(|taint| !tolerated(taint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_and_terms_decide() {
        let label = |key: &str| match key {
            "zone" => Some("a"),
            "cores" => Some("8"),
            _ => None,
        };
        let affinity = |terms: Value| {
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        let one = |key: &str, operator: &str, values: Value| {
            affinity(json!([{"matchExpressions": [
                {"key": key, "operator": operator, "values": values}]}]))
        };
        let cases = [
            (json!({}), true),
            (json!({"nodeSelector": {"zone": "a"}}), true),
            (json!({"nodeSelector": {"zone": "b"}}), false),
            (json!({"nodeSelector": {"disk": null}}), false),
            (one("zone", "In", json!(["a", "b"])), true),
            (one("zone", "NotIn", json!(["a"])), false),
            (one("disk", "NotIn", json!(["a"])), true),
            (one("cores", "Gt", json!(["7"])), true),
            (one("cores", "Lt", json!(["8"])), false),
            (one("disk", "DoesNotExist", json!([])), true),
            (affinity(json!([])), false),
            (affinity(json!([{}])), false),
            (
                affinity(json!([{}, {"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["n"]}]}])),
                true,
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(NodeSelector::of(&spec).matches("n", label), expected, "{spec}");
        }
    }

    #[test]
    fn a_cordon_is_a_taint_and_soft_taints_do_not_count() {
        let hard = ["NoSchedule", "NoExecute"];
        let node = json!({"unschedulable": true, "taints": [
            {"key": "soft", "effect": "PreferNoSchedule"}, {"key": "gpu", "effect": "NoExecute"}]});
        assert_eq!(intolerable(&node, &[], &hard), Some(CORDONED));
        let everything = Toleration { key: "", operator: "Exists", value: "", effect: "" };
        assert_eq!(intolerable(&node, &[everything], &hard), None);
        assert_eq!(intolerable(&node, &[], &["NoExecute"]).map(|taint| taint.key), Some("gpu"));
    }
}
