//! What a pod asks of its node, and how well a node meets it.

use convoy_api::object::member::{field, list, text};
use convoy_plan::taint::{Taint, Toleration};
use serde_json::Value;
use smol_str::SmolStr;

use super::room::{Amounts, Room};

/// The part of a pod that scheduling reads, prepared for many nodes.
pub(super) struct Wants<'p> {
    takes: Amounts,
    selector: &'p Value,
    /// Absent: any node. Present: one of the terms must hold.
    required: Option<&'p [Value]>,
    preferred: &'p [Value],
    tolerations: Vec<Toleration<'p>>,
}

/// The weights Kubernetes gives to its scores.
const AFFINITY_WEIGHT: i64 = 2;
const TAINT_WEIGHT: i64 = 3;

impl<'p> Wants<'p> {
    pub(super) fn of(pod: &'p Value) -> Self {
        let spec = field(pod, "spec");
        let affinity = field(field(spec, "affinity"), "nodeAffinity");
        let required = field(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
        Self {
            takes: Amounts::of_pod(spec),
            selector: field(spec, "nodeSelector"),
            required: required.is_object().then(|| list(required, "nodeSelectorTerms")),
            preferred: list(affinity, "preferredDuringSchedulingIgnoredDuringExecution"),
            tolerations: list(spec, "tolerations").iter().map(Toleration::from_value).collect(),
        }
    }

    /// Why a node will not do, in the words of Kubernetes; nothing if it will.
    pub(super) fn refusals(&self, name: &str, room: &Room) -> Vec<String> {
        let spec = field(&room.node, "spec");
        if field(spec, "unschedulable") == &Value::Bool(true) && !self.tolerates(&CORDONED) {
            return vec!["node(s) were unschedulable".to_owned()];
        }
        let taints = list(spec, "taints").iter().map(Taint::from_value);
        let mut hard = taints.filter(|taint| matches!(taint.effect, "NoSchedule" | "NoExecute"));
        if let Some(taint) = hard.find(|taint| !self.tolerates(taint)) {
            let Taint { key, value, .. } = taint;
            return vec![format!("node(s) had untolerated taint {{{key}: {value}}}")];
        }
        let labels = field(field(&room.node, "metadata"), "labels");
        let selected = self.selector.as_object().into_iter().flatten();
        let is_selected = selected.into_iter().all(|(key, value)| labels.get(key) == Some(value));
        let is_required =
            self.required.is_none_or(|terms| terms.iter().any(|term| holds(term, name, labels)));
        if !is_selected || !is_required {
            return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
        }
        room.lacks(&self.takes)
    }

    /// The node with the highest score; of equals the one with the fewest pods, then the first
    /// by name.
    pub(super) fn best<'n>(&self, fitting: &[(&'n SmolStr, &Room)]) -> Option<&'n SmolStr> {
        let prefers = |name: &str, room: &Room| -> i64 {
            let labels = field(field(&room.node, "metadata"), "labels");
            let kept =
                self.preferred.iter().filter(|p| holds(field(p, "preference"), name, labels));
            kept.filter_map(|preference| field(preference, "weight").as_i64()).sum()
        };
        let disliked = |room: &Room| {
            let taints = list(field(&room.node, "spec"), "taints").iter().map(Taint::from_value);
            let soft = taints.filter(|taint| taint.effect == "PreferNoSchedule");
            i64::try_from(soft.filter(|taint| !self.tolerates(taint)).count()).unwrap_or(i64::MAX)
        };
        let facts: Vec<(i64, i64)> =
            fitting.iter().map(|(name, room)| (prefers(name, room), disliked(room))).collect();
        let most_preferred = facts.iter().map(|(prefers, _)| *prefers).max().unwrap_or(0).max(1);
        let most_disliked = facts.iter().map(|(_, disliked)| *disliked).max().unwrap_or(0).max(1);
        let scored = fitting.iter().zip(&facts).map(|((name, room), (prefers, disliked))| {
            let score = room.least_allocated(&self.takes)
                + AFFINITY_WEIGHT * (100 * prefers / most_preferred)
                + TAINT_WEIGHT * (100 - 100 * disliked / most_disliked);
            (score, std::cmp::Reverse(room.used.pods), std::cmp::Reverse(*name))
        });
        scored.max().map(|(_, _, name)| name.0)
    }

    fn tolerates(&self, taint: &Taint<'_>) -> bool {
        self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }
}

/// What a cordoned node counts as.
const CORDONED: Taint<'static> =
    Taint { key: "node.kubernetes.io/unschedulable", value: "", effect: "NoSchedule" };

/// Whether a node selector term holds; one that asks for nothing holds for no node.
fn holds(term: &Value, name: &str, labels: &Value) -> bool {
    let (labelled, named) = (list(term, "matchExpressions"), list(term, "matchFields"));
    let label = |expression: &Value| labels.get(text(expression, "key")).and_then(Value::as_str);
    let part = |expression: &Value| (text(expression, "key") == "metadata.name").then_some(name);
    !(labelled.is_empty() && named.is_empty())
        && labelled.iter().all(|expression| meets(expression, label(expression)))
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
