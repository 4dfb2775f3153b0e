//! Events about states, each told once as long as it lasts: why nodes may not go, which budgets and
//! annotations cannot be read, which pods get no node.

use super::counts;
use super::writes::Writes;
use crate::dialect::karpenter::decide::Disruptions;
use crate::dialect::karpenter::decide::obstacle::capitalized;
use crate::dialect::karpenter::names::{annotation, event};
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::pod::Protection;
use crate::step::EventType::{Normal, Warning};

/// How many pods are told in one step that they get no node.
const PODS: usize = 100;

/// Everything that is told about the own pool, its nodes and their pods.
pub(super) fn told(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, writes: &mut Writes) {
    blocked(cluster, disruptions, writes);
    budgets(cluster, disruptions, writes);
    unconsolidatable(cluster, disruptions, writes);
    protections(cluster, writes);
    hopeless(cluster, disruptions, writes);
    if cluster.is_first {
        writes.counts.extend(disruptions.timeouts().map(counts::timed_out));
    }
}

/// Members that have a reason to go and may not.
fn blocked(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, writes: &mut Writes) {
    for (at, member) in cluster.own_members().filter(|(_, member)| !member.is_leaving()) {
        let Some(obstacle) = &disruptions.obstacles[at] else { continue };
        if disruptions.has_reason(at) {
            writes.state_of(member, event::DISRUPTION_BLOCKED, &obstacle.sentence());
        }
    }
    for (at, why) in disruptions.stranded() {
        writes.state_of(&cluster.members[at], event::DISRUPTION_BLOCKED, &capitalized(why));
    }
}

/// Budgets that cannot be evaluated, and reasons for which nothing may go.
fn budgets(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, writes: &mut Writes) {
    let key = cluster.pool().object.key();
    for (at, error) in disruptions.own_budgets().errors() {
        let message = format!(
            "budget {at} cannot be evaluated, so nothing of this NodePool is disrupted: {error}"
        );
        writes.state(key, Warning, event::INVALID_BUDGET, message);
    }
    if cluster.count_of_own().total == 0 {
        return;
    }
    for reason in cluster.pool().reasons() {
        if disruptions.own_budgets().ceiling(reason) == Some(0) {
            let word = reason.word();
            let message = format!(
                "No allowed disruptions for disruption reason {word} due to blocking budget"
            );
            writes.state(key, Normal, event::DISRUPTION_BLOCKED, message);
        }
    }
}

/// Nodes that nothing speaks against and that save nothing, or that nobody looks at.
fn unconsolidatable(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, writes: &mut Writes) {
    let (pool, reason) = (cluster.pool(), event::UNCONSOLIDATABLE);
    for (at, why) in disruptions.unconsolidatable() {
        writes.state_of(&cluster.members[at], reason, why);
    }
    for (at, member) in cluster.own_members() {
        if let Some(why) = disruptions.unsuited(at) {
            writes.state_of(member, reason, &why);
        }
    }
    // One Event for the pool: it would be the same on each of thousands of nodes.
    if pool.consolidate_after.is_none() && !pool.is_static() && cluster.count_of_own().total > 0 {
        let message = format!("NodePool {:?} has consolidation disabled", pool.name());
        writes.state(pool.object.key(), Normal, reason, message);
    }
}

/// What the do-not-disrupt annotations of pods on the own nodes come to.
fn protections(cluster: &Cluster<'_>, writes: &mut Writes) {
    let pods = cluster.own_members().flat_map(|(_, member)| cluster.pods_of(member));
    for pod in pods.filter(|pod| pod.is_active()) {
        let (kind, reason, message) = match pod.facts.protection {
            Protection::None | Protection::ForEver => continue,
            Protection::Unreadable => {
                let message = format!(
                    "ignoring {}={:?}: want \"true\" or a positive duration such as 4h",
                    annotation::DO_NOT_DISRUPT,
                    pod.object.annotation(annotation::DO_NOT_DISRUPT).unwrap_or_default()
                );
                (Warning, event::INVALID_DO_NOT_DISRUPT_ANNOTATION, message)
            }
            Protection::Until(end) if cluster.now < end => {
                let key = annotation::DO_NOT_DISRUPT;
                let message = format!("The {key} grace period will elapse at {end}");
                (Normal, event::DO_NOT_DISRUPT_UNTIL, message)
            }
            Protection::Until(_) => {
                let message =
                    format!("The {} grace period has elapsed", annotation::DO_NOT_DISRUPT);
                (Normal, event::DO_NOT_DISRUPT_GRACE_PERIOD_ELAPSED, message)
            }
        };
        writes.state(pod.object.key(), kind, reason, message);
    }
}

/// Pods that no pool makes a node for, and whether that is because the own pool can make none.
fn hopeless(cluster: &Cluster<'_>, disruptions: &Disruptions<'_, '_>, writes: &mut Writes) {
    if let Some(why) = disruptions.incompatible() {
        let key = cluster.pool().object.key();
        writes.state(key, Warning, event::NO_COMPATIBLE_INSTANCE_TYPES, why.to_owned());
    }
    let why = "it fits on no node, and no NodePool could make one for it";
    for pod in std::mem::take(&mut writes.hopeless).iter().take(PODS) {
        let message = format!("Failed to schedule pod, {why}");
        writes.state(pod, Warning, event::FAILED_SCHEDULING, message);
    }
}
