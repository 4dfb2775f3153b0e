//! No node of a pool starts to be disrupted for a reason beyond the pool's budgets for it. Every
//! node that is down counts for every reason. Forced expiration and repair keep to no budget, and
//! begin nothing that looks like a disruption.

use std::collections::BTreeMap;

use convoy_api::karpenter::names::{DISRUPTED_TAINT, NODE_CLAIM, condition};
use convoy_api::kinds::NODE;
use convoy_api::{Object, ObjectKey};
use convoy_plan::{Action, Write};
use serde_json::Value;

use crate::node_pools::{counted, is_down, limit};
use crate::{Finding, Guarantee, Subject};

const REASONS: [&str; 4] = ["Underutilized", "Empty", "Drifted", "Expired"];

pub(super) fn over(subject: &Subject<'_>) -> Option<Finding> {
    let pool = subject.world.get(&subject.step.rollout)?;
    let members = counted(subject.world, pool.name());
    let total = u32::try_from(members.len()).unwrap_or(u32::MAX);
    let down = members.iter().filter(|(claim, node)| is_down(claim, node)).count();
    let started = started(subject);
    let most = |reason: Option<&str>| match reason {
        Some(reason) => limit(pool, reason, total, subject.plan.now).unwrap_or(total),
        None => REASONS
            .map(|it| limit(pool, it, total, subject.plan.now).unwrap_or(total))
            .into_iter()
            .max()
            .unwrap_or(0),
    };
    let goes_down = |(claim, node): &&(&Object, &Object)| !is_down(claim, node);
    let reason = |(claim, node): &(&Object, &Object)| {
        started.get(claim.key()).or_else(|| started.get(node.key())).copied()
    };
    let new = members.iter().filter(goes_down).filter_map(reason);
    let mut new: Vec<(u32, Option<&str>)> = new.map(|reason| (most(reason), reason)).collect();
    // A step may start disruptions of several reasons, that with the smallest limit first.
    new.sort_unstable();
    for (at, (most, reason)) in new.iter().enumerate() {
        let down = down + at + 1;
        if down > *most as usize {
            let reason = reason.unwrap_or("any reason");
            let message =
                format!("{down} of {total} nodes are down, more than {most} for {reason}");
            return Some(subject.finding(Guarantee::G1, message));
        }
    }
    None
}

/// The claims and Nodes that a step begins to disrupt, with the reason if the write says so.
fn started<'s>(subject: &Subject<'s>) -> BTreeMap<&'s ObjectKey, Option<&'s str>> {
    let begins = |action: &'s Action| {
        let Write::Patch { patch, .. } = &action.write else { return None };
        match &action.target.kind {
            kind if *kind == NODE_CLAIM => Some((&action.target, Some(reason(patch)?))),
            kind if *kind == NODE && is_tainted(patch) => Some((&action.target, None)),
            _ => None,
        }
    };
    subject.step.actions.iter().filter_map(begins).collect()
}

/// The reason for which a patch says that its claim is being disrupted.
fn reason(patch: &Value) -> Option<&str> {
    let conditions = patch.pointer("/status/conditions")?.as_array()?;
    let is_it =
        |entry: &&Value| entry["type"] == condition::DISRUPTION_REASON && entry["status"] == "True";
    conditions.iter().find(is_it)?.get("reason")?.as_str()
}

fn is_tainted(raw: &Value) -> bool {
    let taints = raw.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    taints
        .into_iter()
        .any(|taint| taint.get("key").and_then(Value::as_str) == Some(DISRUPTED_TAINT))
}
