//! The `podFailurePolicy` of a Job: what follows from the failure of a pod.

use convoy_api::Object;
use convoy_api::apps::spec::{ExitCodes, PodConditionPattern, PodFailureRule};
use convoy_api::object::member::{field, list, text};
use convoy_api::object::view::view_of;

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// It counts as any other.
    Count,
    /// It is not counted, and the pod is replaced.
    Ignore,
    /// The index of the pod is not tried again.
    FailIndex,
    /// The whole Job has failed.
    FailJob,
}

/// The rules of a Job, in order. Rules are read one by one: one that does not fit its type is about
/// no pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodFailurePolicy {
    rules: Vec<PodFailureRule>,
}

impl PodFailurePolicy {
    pub(crate) fn read(owner: &Object) -> Self {
        let rules = list(field(owner.spec(), "podFailurePolicy"), "rules").iter();
        Self { rules: rules.map(|rule| view_of(rule).unwrap_or_default()).collect() }
    }

    /// What follows from the failure of a pod by the first rule that it matches, and that rule in
    /// words. None while the pod has not failed, and if no rule is about it.
    pub(crate) fn consequence(&self, pod: &Object) -> Option<(Consequence, String)> {
        if pod.status_text("phase") != "Failed" {
            return None;
        }
        let rules = self.rules.iter().enumerate();
        let mut matching = rules.filter_map(|(at, rule)| Some((at, rule, cause(rule, pod)?)));
        let (at, rule, cause) = matching.next()?;
        let action = rule.action.as_deref().unwrap_or_default();
        let consequence = match action {
            "Ignore" => Consequence::Ignore,
            "FailIndex" => Consequence::FailIndex,
            "FailJob" => Consequence::FailJob,
            _ => Consequence::Count,
        };
        Some((consequence, format!("{cause} matching {action} rule at index {at}")))
    }
}

/// What a rule finds in a pod.
fn cause(rule: &PodFailureRule, pod: &Object) -> Option<String> {
    let name = format!("{}/{}", pod.namespace(), pod.name());
    if let Some(codes) = &rule.on_exit_codes {
        let (container, code) = ended(codes, pod)?;
        return Some(format!("Container {container} for pod {name} failed with exit code {code}"));
    }
    let kind = |pattern: &PodConditionPattern| pattern.kind.clone().unwrap_or_default();
    let is_met = |pattern: &&PodConditionPattern| {
        let wanted = pattern.status.as_deref().filter(|status| !status.is_empty());
        pod.condition_status(&kind(pattern)) == Some(wanted.unwrap_or("True"))
    };
    let pattern = rule.on_pod_conditions.iter().flatten().find(is_met)?;
    Some(format!("Pod {name} has condition {}", kind(pattern)))
}

/// The first container that ended with a code that is asked for. Zero is never a failure.
fn ended<'o>(codes: &ExitCodes, pod: &'o Object) -> Option<(&'o str, i64)> {
    let named = codes.container_name.as_deref();
    let listed = |code: i64| codes.values.iter().flatten().any(|value| *value == code);
    let is_in = codes.operator.as_deref() == Some("In");
    let statuses = ["containerStatuses", "initContainerStatuses"];
    let mut ends = statuses.iter().flat_map(|kind| list(pod.status(), kind)).filter_map(|of| {
        let code = of.pointer("/state/terminated/exitCode")?.as_i64()?;
        Some((text(of, "name"), code))
    });
    ends.find(|(container, code)| {
        *code != 0 && named.is_none_or(|name| name == *container) && listed(*code) == is_in
    })
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = json!([
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {"action": "FailIndex", "onExitCodes": {"containerName": "main", "operator": "NotIn", "values": [7]}},
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [1]}}]);
        let job =
            object("batch/v1", "Job", "work").spec(json!({"podFailurePolicy": {"rules": rules}}));
        let policy = PodFailurePolicy::read(&job.build());
        let ended = |name: &str, code: i64| {
            json!({"phase": "Failed", "containerStatuses": [
            {"name": name, "state": {"terminated": {"exitCode": code}}}]})
        };
        let disrupted = json!({"phase": "Failed", "conditions": [
            {"type": "DisruptionTarget", "status": "True"}]});
        let failed = "Container main for pod shop/p failed with exit code";
        let cases = [
            (
                disrupted,
                Some((
                    Consequence::Ignore,
                    "Pod shop/p has condition DisruptionTarget matching Ignore rule at index 0"
                        .to_owned(),
                )),
            ),
            (
                ended("main", 42),
                Some((
                    Consequence::FailJob,
                    format!("{failed} 42 matching FailJob rule at index 1"),
                )),
            ),
            (
                ended("main", 3),
                Some((
                    Consequence::FailIndex,
                    format!("{failed} 3 matching FailIndex rule at index 2"),
                )),
            ),
            (
                ended("main", 7),
                Some((Consequence::Count, format!("{failed} 7 matching Count rule at index 3"))),
            ),
            (ended("side", 1), None),
            (ended("main", 0), None),
            (json!({"phase": "Running"}), None),
        ];
        for (status, expected) in cases {
            let pod = object("v1", "Pod", "p").namespace("shop").status(status.clone()).build();
            assert_eq!(policy.consequence(&pod), expected, "{status}");
        }
    }
}
