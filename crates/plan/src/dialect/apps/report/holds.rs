//! What fills the budgets of a Deployment: replicas that are not ready, and new ones that are ready
//! and do not count as available yet.

use convoy_api::Object;

use crate::dialect::apps::decide::DeploymentDecision;
use crate::dialect::apps::read::owned_set::OwnedSet;
use crate::dialect::apps::read::pod::trouble;
use crate::hold::{Hold, HoldReason};
use crate::ownership::is_controlled_by;
use crate::pods::{available_at, is_finished, is_ready, ready_since};

/// By pod where the pods are known.
pub(super) fn settling(decision: &DeploymentDecision<'_>) -> Vec<Hold> {
    let Some(set) = decision.new_set() else { return Vec::new() };
    let for_secs = decision.deployment.min_ready_secs;
    if for_secs == 0 || set.counts.ready <= set.counts.available {
        return Vec::new();
    }
    let has_uid = set.object.uid().is_some();
    let ours = |pod: &&&Object| has_uid && is_controlled_by(pod, set.object);
    let pods = decision.pods.iter().filter(ours).filter_map(|pod| {
        let until = available_at(ready_since(pod)?, for_secs)?;
        (until > decision.now).then(|| {
            Hold::of_member(pod.name().clone(), HoldReason::Settling { for_secs })
                .in_group(set.name().clone())
                .until(Some(until))
        })
    });
    let holds: Vec<Hold> = pods.collect();
    if holds.is_empty() {
        let hold = Hold::of_rollout(HoldReason::Settling { for_secs });
        return vec![hold.in_group(set.name().clone())];
    }
    holds
}

/// By set, where a budget is spent: that says how many are in use, this why they are. With the
/// trouble of one pod, where pods are known.
pub(super) fn not_ready(decision: &DeploymentDecision<'_>) -> Vec<Hold> {
    let is_spent = |hold: &Hold| matches!(hold.reason, HoldReason::BudgetSpent { .. });
    if !decision.holds.iter().any(is_spent) {
        return Vec::new();
    }
    let lacking = decision.sets.iter().filter(|set| set.counts.ready < set.counts.replicas);
    let holds = lacking.map(|set| {
        let replicas = set.counts.replicas;
        let pods = if replicas == 1 { "pod is" } else { "pods are" };
        let missing = replicas - set.counts.ready;
        let example = example(decision, set).unwrap_or_default();
        let detail = format!("{missing} of {replicas} {pods} not ready{example}");
        Hold::of_rollout(HoldReason::NotAvailable { detail }).in_group(set.name().clone())
    });
    holds.collect()
}

fn example(decision: &DeploymentDecision<'_>, set: &OwnedSet<'_>) -> Option<String> {
    let is_ours = |pod: &&&Object| set.object.uid().is_some() && is_controlled_by(pod, set.object);
    let mut pods = decision.pods.iter().filter(is_ours);
    let pod = pods.find(|pod| !is_ready(pod) && !is_finished(pod) && !pod.is_deleting())?;
    Some(format!(", such as {}: {}", pod.name(), trouble(pod)))
}
