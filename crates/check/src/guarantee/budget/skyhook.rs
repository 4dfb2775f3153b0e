//! A compartment never has more nodes in progress than its ceiling; a legacy budget of zero
//! still lets one through, as the API says.

use std::collections::BTreeSet;

use convoy_api::{GroupKind, Object};
use convoy_plan::budget::{IntOrPercent, Rounding};
use convoy_plan::{Action, Write};
use serde_json::Value;

use crate::{Finding, Guarantee, Subject};

const NODE: GroupKind = GroupKind::new("", "Node");
const POLICY: GroupKind = GroupKind::new("skyhook.nvidia.com", "DeploymentPolicy");

pub(super) fn over(subject: &Subject<'_>) -> Option<Finding> {
    let skyhook = subject.world.get(&subject.step.rollout)?;
    let status_key = format!("skyhook.nvidia.com/status_{}", skyhook.name());
    let mark = format!("/metadata/annotations/{}", status_key.replace('/', "~1"));
    let starting: BTreeSet<&str> =
        subject.step.actions.iter().filter_map(|action| started(action, &mark)).collect();
    let compartments = subject.step.decision.get("compartments")?.as_object()?;
    for (name, report) in compartments {
        let members: Vec<&str> =
            report.get("members")?.as_array()?.iter().filter_map(Value::as_str).collect();
        let ceiling = ceiling(subject, skyhook, name, members.len()).max(1);
        let running = |node: &&str| {
            let object = subject.world.find(&NODE, "", node);
            object.and_then(|node| node.annotation(&status_key)) == Some("in_progress")
        };
        let before = members.iter().filter(|node| running(node)).count();
        let after =
            members.iter().filter(|node| running(node) || starting.contains(**node)).count();
        if after > before.max(ceiling as usize) {
            let message =
                format!("compartment {name} has {after} nodes in progress, {ceiling} are the most");
            return Some(subject.finding(Guarantee::G1, message));
        }
    }
    None
}

/// The node that this action marks as in progress.
fn started<'a>(action: &'a Action, mark: &str) -> Option<&'a str> {
    let Write::Patch { patch, .. } = &action.write else { return None };
    let word = patch.pointer(mark)?.as_str()?;
    (action.target.kind == NODE && word == "in_progress").then_some(action.target.name.as_str())
}

/// The ceiling as the policy, or the legacy budget, writes it.
fn ceiling(subject: &Subject<'_>, skyhook: &Object, compartment: &str, members: usize) -> u32 {
    let members = u32::try_from(members).unwrap_or(u32::MAX);
    let name = skyhook.spec().get("deploymentPolicy").and_then(Value::as_str).unwrap_or_default();
    let budget = if name.is_empty() {
        skyhook.spec().get("interruptionBudget")
    } else {
        let policy = subject.world.find(&POLICY, "", name).map_or(&Value::Null, Object::spec);
        let listed = policy.get("compartments").and_then(Value::as_array).into_iter().flatten();
        let mut listed =
            listed.filter(|entry| entry.get("name").and_then(Value::as_str) == Some(compartment));
        listed.next().or_else(|| policy.get("default")).and_then(|entry| entry.get("budget"))
    };
    let number = |field: &str| budget.and_then(|budget| budget.get(field)).and_then(Value::as_i64);
    let budget = match (number("percent"), number("count")) {
        (Some(percent), _) => IntOrPercent::Percent(u32::try_from(percent).unwrap_or(0)),
        (None, Some(count)) => IntOrPercent::Int(count),
        (None, None) => IntOrPercent::Percent(100),
    };
    budget.resolve(members, Rounding::Down { at_least: 1 })
}
