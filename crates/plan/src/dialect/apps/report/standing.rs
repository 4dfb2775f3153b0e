//! Where the replicas of a Deployment stand, why those that wait do, and the verdict.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::dialect::apps::decide::progress::{PROGRESSING, REPLICA_FAILURE, TIMED_OUT, find, word};
use crate::dialect::apps::decide::{Ending, Pass};
use crate::dialect::apps::read::owned_set::Set;
use crate::dialect::apps::status::Counters;
use crate::hold::{Hold, HoldReason};
use crate::step::{GroupReport, Step, Verdict};

/// Fills in groups, holds and the instant to look again.
pub(crate) fn fill(step: &mut Step, pass: &Pass<'_>, counters: &Counters, ending: Ending) {
    step.groups = groups(pass);
    if ending == Ending::Rollout {
        let settling = settling(pass);
        let deadline = pass.deadline(counters);
        let timers = settling.iter().filter_map(|hold| hold.until).chain(deadline);
        step.wake_at = timers.chain(pass.failure_deadline()).min();
        step.holds.extend(waiting_new(pass));
        step.holds.extend(waiting_old(pass));
        step.holds.extend(settling);
    }
}

/// Says where the rollout stands, given everything else about the step.
pub(crate) fn judge(step: &mut Step, pass: &Pass<'_>, counters: &Counters, ending: Ending) {
    let object = pass.deployment.object;
    let in_flight = step.groups.iter().any(|group| group.moving + group.settling + group.gone > 0);
    let progressing = find(&pass.conditions, PROGRESSING);
    let failure = find(&pass.conditions, REPLICA_FAILURE);
    let mut hold = |reason| step.holds.push(Hold::of_rollout(reason));
    step.verdict = if object.is_deleting() {
        hold(HoldReason::Depends { on: "the garbage collector: it is being deleted".to_owned() });
        Verdict::Held
    } else if pass.deployment.paused {
        hold(HoldReason::Paused);
        Verdict::Paused
    } else if !step.actions.is_empty() || ending == Ending::Aside {
        Verdict::Moving
    } else if pass.is_complete(counters) && pass.new_size() == pass.deployment.replicas {
        Verdict::Done
    } else if word(progressing, "reason") == TIMED_OUT {
        let secs = pass.deployment.deadline_secs.unwrap_or_default();
        let (available, n) = (counters.available, pass.deployment.replicas);
        let detail = format!(
            "no progress within {secs}s: {} of {n} replicas updated, {available} available",
            counters.updated
        );
        hold(HoldReason::Failed { detail });
        Verdict::Stopped
    } else if word(failure, "status") == "True" {
        hold(HoldReason::Failed { detail: word(failure, "message").to_owned() });
        Verdict::Held
    } else if pass.deployment.recreate && pass.new.is_none() && pass.old_replicas_left() > 0 {
        let pods = u32::try_from(pass.old_replicas_left()).unwrap_or(u32::MAX);
        hold(HoldReason::Draining { pods });
        Verdict::Held
    } else if in_flight || step.status.is_some() {
        Verdict::Moving
    } else if let Some(set) = pass.unheard() {
        let on = format!("the controller of {}, which has not taken in its size", set.name());
        hold(HoldReason::Depends { on });
        Verdict::Held
    } else {
        let detail = format!(
            "{} of {} replicas updated and none under way",
            counters.updated, pass.deployment.replicas
        );
        hold(HoldReason::Stalled { detail });
        Verdict::Stopped
    };
}

/// One group per ReplicaSet that has replicas or is to have some.
fn groups(pass: &Pass<'_>) -> Vec<GroupReport> {
    let mut groups: Vec<GroupReport> = pass
        .old()
        .filter(|set| set.had > 0 || set.counts.replicas > 0)
        .map(|set| old_group(set))
        .collect();
    if let Some(created) = &pass.created {
        let mut group = GroupReport::new(created.name.clone());
        group.moving = number(created.replicas);
        group.waiting = number(pass.deployment.replicas - created.replicas);
        group.total = group.moving + group.waiting;
        groups.push(group);
    }
    groups.extend(pass.new_set().map(|set| new_group(set, pass.deployment.replicas)));
    groups
}

/// Old replicas wait to be replaced, or are on their way out.
fn old_group(set: &Set<'_>) -> GroupReport {
    let mut group = GroupReport::new(set.name().as_str());
    group.waiting = number(set.wants);
    group.gone = number(set.had.max(set.counts.replicas) - set.wants);
    group.total = group.waiting + group.gone;
    group
}

/// New replicas wait for room, start, settle, and are done once they are available.
fn new_group(set: &Set<'_>, replicas: i64) -> GroupReport {
    let mut group = GroupReport::new(set.name().as_str());
    group.done = number(set.counts.available.min(set.wants));
    group.settling = number(set.counts.ready.min(set.wants) - i64::from(group.done));
    group.moving = number(set.wants - i64::from(group.done) - i64::from(group.settling));
    group.waiting = number(replicas - set.wants);
    group.gone = number(set.had.max(set.counts.replicas) - set.wants);
    group.total = group.done + group.settling + group.moving + group.waiting + group.gone;
    group
}

fn number(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

/// Why the new set does not have all its replicas yet.
fn waiting_new(pass: &Pass<'_>) -> Option<Hold> {
    let (n, size) = (pass.deployment.replicas, pass.new_size());
    if size >= n {
        return None;
    }
    let reason = if pass.deployment.recreate {
        HoldReason::Draining { pods: number(pass.old_replicas_left()) }
    } else {
        HoldReason::BudgetSpent {
            limit: "maxSurge",
            in_flight: number(pass.deployment.surge - pass.room()),
            ceiling: number(pass.deployment.surge),
            by: Vec::new(),
        }
    };
    let name = pass.new_name().unwrap_or("(new)");
    Some(Hold::of_rollout(reason).in_group(name))
}

/// Why old replicas are still there.
fn waiting_old(pass: &Pass<'_>) -> Vec<Hold> {
    let n = pass.deployment.replicas;
    let available: i64 = pass.sets.iter().map(|set| set.counts.available.min(set.wants)).sum();
    let ceiling = pass.deployment.may_be_missing();
    let reason = if n - available >= ceiling {
        HoldReason::BudgetSpent {
            limit: "maxUnavailable",
            in_flight: number(n - available),
            ceiling: number(ceiling),
            by: Vec::new(),
        }
    } else {
        let name = pass.new_name().unwrap_or("(new)");
        let on = format!("{name}, which has {} of {n} replicas", pass.new_size());
        HoldReason::Depends { on }
    };
    let waiting = pass.old().filter(|set| set.wants > 0);
    waiting.map(|set| Hold::of_rollout(reason.clone()).in_group(set.name().clone())).collect()
}

/// New replicas that are ready and do not count yet; by pod where the pods are known.
fn settling(pass: &Pass<'_>) -> Vec<Hold> {
    let Some(set) = pass.new_set() else { return Vec::new() };
    let for_secs = pass.deployment.min_ready_secs;
    if for_secs == 0 || set.counts.ready <= set.counts.available {
        return Vec::new();
    }
    let uids: BTreeSet<&str> = set.object.uid().into_iter().collect();
    let ours = |pod: &&&Object| pod.controller().is_some_and(|by| uids.contains(by.uid));
    let pods = pass.pods.iter().filter(ours).filter_map(|pod| {
        let until = ready_since(pod)?.checked_add(SignedDuration::from_secs(for_secs)).ok()?;
        (until > pass.now).then(|| {
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

/// Since when a pod is ready, if it is and that is known.
pub(crate) fn ready_since(pod: &Object) -> Option<Timestamp> {
    let ready = pod.condition("Ready")?;
    if ready.get("status").and_then(Value::as_str) != Some("True") {
        return None;
    }
    timestamp(ready.get("lastTransitionTime"))
}
