//! Where the replicas of a Deployment stand, by ReplicaSet.

use crate::dialect::apps::decide::{DeploymentDecision, number};
use crate::dialect::apps::read::owned_set::OwnedSet;
use crate::step::GroupReport;

/// One group per ReplicaSet that has replicas or is to have some.
pub(super) fn groups(decision: &DeploymentDecision<'_>) -> Vec<GroupReport> {
    let mut groups: Vec<GroupReport> = decision
        .old()
        .filter(|set| set.had > 0 || set.counts.replicas > 0)
        .map(|set| old_group(set))
        .collect();
    if let Some(created) = &decision.created {
        let mut group = GroupReport::new(created.name.clone());
        group.moving = number(created.replicas);
        group.waiting = number(decision.deployment.replicas - created.replicas);
        group.total = group.moving + group.waiting;
        groups.push(group);
    }
    groups.extend(decision.new_set().map(|set| new_group(set, decision.deployment.replicas)));
    groups
}

/// Old replicas wait to be replaced, or are on their way out.
fn old_group(set: &OwnedSet<'_>) -> GroupReport {
    let mut group = GroupReport::new(set.name().as_str());
    group.waiting = number(set.wants);
    group.gone = number(set.had.max(set.counts.replicas) - set.wants);
    group.total = group.waiting + group.gone;
    group.outgoing = true;
    group
}

/// New replicas wait for room, start, settle, and are done once they are available.
fn new_group(set: &OwnedSet<'_>, replicas: i64) -> GroupReport {
    let mut group = GroupReport::new(set.name().as_str());
    group.done = number(set.counts.available.min(set.wants));
    group.settling = number(set.counts.ready.min(set.wants) - i64::from(group.done));
    group.moving = number(set.wants - i64::from(group.done) - i64::from(group.settling));
    group.waiting = number(replicas - set.wants);
    group.gone = number(set.had.max(set.counts.replicas) - set.wants);
    group.total = group.done + group.settling + group.moving + group.waiting + group.gone;
    group
}
