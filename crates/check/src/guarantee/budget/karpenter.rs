//! A pool never starts more disruptions than its most generous reason allows. Every start counts
//! against every reason, so the sum over all reasons stays below that bound, too.

use convoy_api::Object;
use convoy_api::kinds::NODE;
use convoy_plan::Write;
use serde_json::Value;

use crate::{Finding, Guarantee, Subject};

const DISRUPTED: &str = "karpenter.sh/disrupted";

pub(super) fn over(subject: &Subject<'_>) -> Option<Finding> {
    let pool = subject.step.rollout.name.as_str();
    let allowed = subject.step.decision.get("allowed")?.get(pool)?.as_object()?;
    let most = allowed.values().filter_map(Value::as_u64).max().unwrap_or(0);
    let started = subject.step.actions.iter().filter(|action| {
        let Write::Patch { patch, .. } = &action.write else { return false };
        action.target.kind == NODE
            && tainted(patch)
            && subject.world.get(&action.target).is_none_or(takes_room)
    });
    let started = started.count() as u64;
    (started > most).then(|| {
        let message = format!("starts {started} disruptions, more than {most} for any reason");
        subject.finding(Guarantee::G1, message)
    })
}

/// Whether disrupting a node uses budget: a node that is not ready, terminating or already tainted
/// counts as disrupted.
fn takes_room(node: &Object) -> bool {
    node.condition_status("Ready") == Some("True") && !node.is_deleting() && !tainted(node.raw())
}

fn tainted(raw: &Value) -> bool {
    let taints = raw.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    taints.into_iter().any(|taint| taint.get("key").and_then(Value::as_str) == Some(DISRUPTED))
}
