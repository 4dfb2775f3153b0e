//! The conditions of a Skyhook. Names are listed up to a few, so that no message grows with
//! the fleet.

use std::borrow::Cow;

use convoy_api::skyhook::StatusWord;
use serde_json::Value;

use crate::condition::{Condition, remove, set, truth};
use crate::dialect::skyhook::decide::Decision;
use crate::dialect::skyhook::decide::member::Member;
use crate::dialect::skyhook::decide::safety::passed_by_failures;
use crate::dialect::skyhook::names::PREFIX;
use crate::dialect::skyhook::read::node::word_text;
use crate::dialect::skyhook::status::waiting;
use crate::hold::{Hold, HoldReason};

/// How many nodes a message names.
const NAMED_MAX: usize = 10;

/// What is said of a Skyhook without nodes. Its status is complete, as upstream has it; the rollout
/// is held, because a selector with a typo is no success.
pub(crate) const NOTHING_SELECTED: &str = "no node matches spec.nodeSelectors";

/// The list as it should read.
pub(crate) fn conditions(
    decision: &Decision<'_, '_>,
    rolled_up: StatusWord,
    holds: &[Hold],
) -> Value {
    let stored = decision.hook.object.status().get("conditions").and_then(Value::as_array);
    let mut list = stored.cloned().unwrap_or_default();
    let mut put = |condition: &Condition| set(&mut list, condition, decision.now);
    let old = decision.hook.published_word().unwrap_or("unknown");
    let new = word_text(rolled_up);
    if old != new || decision.hook.published_word().is_none() {
        put(&Condition::new(
            format!("{PREFIX}Transition"),
            truth(rolled_up == StatusWord::Complete),
            new,
            format!("Transitioned [{old}] -> [{new}]"),
        ));
    }
    put(&obstacles(
        decision,
        "TaintNotTolerable",
        |member| matches!(member.obstacle.as_deref(), Some(HoldReason::TaintNotTolerated { .. })),
        "has taints that are not tolerable. Skipping.",
        "All nodes have tolerable taints.",
    ));
    put(&obstacles(
        decision,
        "NodesIgnored",
        |member: &Member<'_>| member.is_ignored(),
        "has ignore label set. Skipping.",
        "No nodes have ignore label set.",
    ));
    if let Some(condition) = applying(decision) {
        put(&condition);
    }
    put(&ready(decision, rolled_up));
    let stored = stored.map_or(&[] as &[Value], Vec::as_slice);
    let told = [waiting(stored, holds), safety_limit(decision, stored)];
    told.iter().flatten().for_each(&mut put);
    let missing = format!("{PREFIX}DeploymentPolicyNotFound");
    if decision.policy_missing {
        put(&Condition::new(
            missing.as_str(),
            "True",
            "DeploymentPolicyNotFound",
            format!("DeploymentPolicy {:?} not found", decision.hook.policy),
        ));
    } else {
        remove(&mut list, &missing);
    }
    Value::Array(list)
}

fn obstacles(
    decision: &Decision<'_, '_>,
    reason: &'static str,
    test: impl Fn(&Member<'_>) -> bool,
    some: &str,
    none: &str,
) -> Condition<'static> {
    let affected = || decision.members.iter().filter(|member| test(member));
    let total = affected().count();
    let named: Vec<&str> =
        affected().take(NAMED_MAX).map(|member| member.node.name().as_str()).collect();
    let more = match total.saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = match total {
        0 => none.into(),
        _ => format!("Node [{}{more}] {some}", named.join(", ")),
    };
    Condition::new(format!("{PREFIX}{reason}"), truth(total > 0), reason, message)
}

/// The last package that a pod is made for now.
fn applying(decision: &Decision<'_, '_>) -> Option<Condition<'static>> {
    let (index, pod) =
        decision.plans().rev().find_map(|(index, plan)| Some((index, plan.pods.last()?)))?;
    let node = decision.members[index].node.name();
    let (name, version) = (&pod.entry.name, &pod.entry.version);
    let message = format!("Applying package [{name}:{version}] to node [{node}]");
    Some(Condition::new(format!("{PREFIX}ApplyPackage"), "True", "ApplyPackage", message))
}

/// Which nodes wait, and why. Absent until a node has waited.
fn waiting(stored: &[Value], holds: &[Hold]) -> Option<Condition<'static>> {
    let summary = waiting::summary(holds);
    let is_waiting = summary.is_some();
    let message = summary.map_or(Cow::Borrowed("No node waits."), Into::into);
    once("NodesWaiting", is_waiting, message, stored)
}

/// Which compartments failures carried past their safety limit. Absent until there is one.
fn safety_limit(decision: &Decision<'_, '_>, stored: &[Value]) -> Option<Condition<'static>> {
    let passed: Vec<String> = passed_by_failures(decision).map(|passed| passed.text()).collect();
    let none = "No compartment is past its safetyLimit because of failed nodes.";
    let message = if passed.is_empty() { none.to_owned() } else { passed.join(". ") };
    once("SafetyLimitPassed", !passed.is_empty(), message, stored)
}

/// A condition that is absent until it is true for the first time.
fn once(
    reason: &'static str,
    is_true: bool,
    message: impl Into<Cow<'static, str>>,
    stored: &[Value],
) -> Option<Condition<'static>> {
    let kind = format!("{PREFIX}{reason}");
    let is_published = stored.iter().any(|condition| condition["type"] == kind.as_str());
    (is_true || is_published).then(|| Condition::new(kind, truth(is_true), reason, message))
}

/// The condition that `kubectl wait` and deployment tools know.
fn ready(decision: &Decision<'_, '_>, rolled_up: StatusWord) -> Condition<'static> {
    let reason = match rolled_up {
        StatusWord::Complete => "NodesConverged",
        StatusWord::InProgress => "Progressing",
        StatusWord::Blocked => "Blocked",
        StatusWord::Erroring => "Erroring",
        StatusWord::Paused => "Paused",
        StatusWord::Waiting => "Waiting",
        StatusWord::Disabled => "Disabled",
        StatusWord::Unknown => "Unknown",
    };
    let complete = decision.members.iter().filter(|member| member.is_complete()).count();
    let message = match decision.members.len() {
        0 => NOTHING_SELECTED.to_owned(),
        nodes => format!("{complete} of {nodes} nodes are complete"),
    };
    Condition::new("Ready", truth(rolled_up == StatusWord::Complete), reason, message)
}
