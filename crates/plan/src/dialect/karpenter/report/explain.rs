//! Why a reason allows as many disruptions as it does: the budget that counts, the arithmetic,
//! who uses it up, and when the passing of time changes it.

use serde_json::{Map, Value, json};

use crate::condition::instant;
use crate::dialect::karpenter::decide::Disruptions;
use crate::dialect::karpenter::decide::budgets::Applicable;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::reason::Reason;
use crate::hold::NAMED;

/// By reason: `allowed`, `limit` (absent: none), `inUse`, `usedBy` (the first few), `budget` (its
/// index, absent: none), `formula` and `changesAt`.
pub(crate) fn explain(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>) -> Value {
    let used_by: Vec<&str> = cluster
        .own_members()
        .map(|(_, member)| member)
        .filter(|member| member.is_down())
        .map(Member::node_name)
        .take(NAMED)
        .collect();
    let of = |reason: Reason| {
        let budgets = disruptions.own_budgets();
        let changes_at = budgets.changes_at(reason, cluster.now);
        json!({
            "allowed": disruptions.allowed(reason),
            "limit": budgets.ceiling(reason),
            "inUse": cluster.count_of_own().down,
            "usedBy": used_by,
            "budget": budgets.smallest(reason).map(|budget| budget.index),
            "formula": formula(cluster, disruptions, reason),
            "changesAt": changes_at.map(instant),
        })
    };
    let by_reason: Map<String, Value> =
        cluster.pool().reasons().map(|it| (it.word().to_owned(), of(it))).collect();
    json!({cluster.pool().name(): by_reason})
}

fn formula(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, reason: Reason) -> String {
    let (budgets, count) = (disruptions.own_budgets(), cluster.count_of_own());
    let (total, down) = (count.total, count.down);
    if let Some((at, error)) = budgets.errors().next() {
        return format!("0 for every reason: budget {at} cannot be evaluated: {error}");
    }
    let allowed = disruptions.allowed(reason);
    if total == 0 {
        return "the pool has no nodes".to_owned();
    }
    match budgets.smallest(reason) {
        Some(Applicable { index, ceiling, .. }) => {
            let written = cluster.pool().budgets[index].amount(total);
            format!("budget {index}: {written}; {ceiling} - {down} down = {allowed}")
        }
        None => {
            format!("no active budget covers {}: {total} - {down} down = {allowed}", reason.word())
        }
    }
}
