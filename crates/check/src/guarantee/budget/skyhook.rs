//! A compartment never has more nodes in progress than its ceiling; a legacy budget of zero still
//! allows one, as in the API. Follows the writes in order: a slot can be taken only after it was
//! freed, and pods are created only on nodes with a slot.

use convoy_api::kinds::NODE;
use convoy_api::kinds::POD;
use std::collections::BTreeSet;

use convoy_api::{GroupKind, Object};
use convoy_plan::budget::{IntOrPercent, Rounding};
use convoy_plan::{Action, Write};
use serde_json::Value;

use crate::{Finding, Guarantee, Subject};

const POLICY: GroupKind = GroupKind::new("skyhook.nvidia.com", "DeploymentPolicy");

pub(super) fn over(subject: &Subject<'_>) -> Option<Finding> {
    let skyhook = subject.world.get(&subject.step.rollout)?;
    let status_key = format!("skyhook.nvidia.com/status_{}", skyhook.name());
    let mark = format!("/metadata/annotations/{}", status_key.replace('/', "~1"));
    let compartments = subject.step.decision.get("compartments")?.as_object()?;
    for (name, report) in compartments {
        let members: BTreeSet<&str> =
            report.get("members")?.as_array()?.iter().filter_map(Value::as_str).collect();
        let ceiling = ceiling(subject, skyhook, name, members.len()).max(1);
        let running = |node: &&str| {
            let object = subject.world.find(&NODE, "", node);
            object.and_then(|node| node.annotation(&status_key)) == Some("in_progress")
        };
        let mut in_progress: BTreeSet<&str> = members.iter().copied().filter(running).collect();
        let most = in_progress.len().max(ceiling as usize);
        for action in &subject.step.actions {
            if let Some(node) = made_on(action).filter(|node| members.contains(node))
                && !in_progress.contains(node)
            {
                let message = format!("creates a pod on {node}, which is not in progress");
                return Some(subject.finding(Guarantee::G1, message));
            }
            let Some((node, starts)) = marked(action, &mark) else { continue };
            if starts && members.contains(node) {
                in_progress.insert(node);
            } else {
                in_progress.remove(node);
            }
            if in_progress.len() > most {
                let count = in_progress.len();
                let message = format!(
                    "compartment {name} has {count} nodes in progress, more than {ceiling}"
                );
                return Some(subject.finding(Guarantee::G1, message));
            }
        }
    }
    None
}

/// The node whose status this action writes, and whether that is `in_progress`.
fn marked<'a>(action: &'a Action, mark: &str) -> Option<(&'a str, bool)> {
    let Write::Patch { patch, .. } = &action.write else { return None };
    let word = patch.pointer(mark)?;
    let starts = word.as_str() == Some("in_progress");
    (action.target.kind == NODE).then_some((action.target.name.as_str(), starts))
}

/// The node on which this action creates a pod.
fn made_on(action: &Action) -> Option<&str> {
    let Write::Create { object } = &action.write else { return None };
    (action.target.kind == POD).then(|| object.pointer("/spec/nodeName")?.as_str())?
}

/// The ceiling of the policy or the legacy budget.
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
