//! A decision about a Job as a [`Step`]. Its members are pods.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;

use super::Members;
use crate::dialect::workloads::decide::job::{JobDecision, decide};
use crate::dialect::workloads::read::Unreadable;
use crate::dialect::workloads::read::job::{Job, other_controller};
use crate::dialect::workloads::status::job::status;
use crate::dialect::workloads::write::job::{expire, writes};
use crate::hold::{Hold, HoldReason};
use crate::pods::writes::Writes;
use crate::snapshot::Snapshot;
use crate::step::{MemberState, Step, Verdict};

pub(crate) fn step(
    dialect: &'static str,
    snapshot: &Snapshot<'_>,
    now: Timestamp,
) -> Result<Step, Unreadable> {
    let job = Job::read(snapshot, now)?;
    let decision = decide(&job);
    if let Some(other) = other_controller(job.owner) {
        return Ok(left_alone(dialect, &job, &decision, other));
    }
    let writes = writes(&job, &decision, snapshot);
    let members = members(&job, &decision);
    let (succeeded, failed) = (job.tally.succeeded, job.tally.failed);
    let summary = json!({"active": job.active.len(), "succeeded": succeeded, "failed": failed});
    Ok(members.step(dialect, writes, job.owner, status(&job, &decision), summary))
}

/// A Job of another controller: it is not touched, except that its time to live is kept, which is
/// not for a controller of Jobs to do.
fn left_alone(
    dialect: &'static str,
    job: &Job<'_>,
    decision: &JobDecision<'_>,
    other: &str,
) -> Step {
    let verdict = if job.is_finished() { Verdict::Done } else { Verdict::Held };
    let mut step = Step::new(dialect, job.owner, verdict);
    let mut writes = Writes::new(job.owner);
    expire(&mut writes, job, decision);
    step.actions = writes.actions;
    step.wake_at = decision.expires_at.filter(|at| *at > job.now);
    if !job.is_finished() {
        let on = format!("{other}, the controller in spec.managedBy");
        step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
    }
    step
}

fn members(job: &Job<'_>, decision: &JobDecision<'_>) -> Members {
    let mut members = Members::new(job.owner);
    if job.is_finished() {
        members.group.count(MemberState::Done);
        members.wake_at = decision.expires_at.filter(|at| *at > job.now);
        return members;
    }
    if job.owner.is_deleting() {
        return members;
    }
    let removed: BTreeSet<&str> =
        decision.removals.iter().map(|(pod, _)| pod.name().as_str()).collect();
    for (pod, health) in &job.active {
        if removed.contains(pod.name().as_str()) {
            members.group.count(MemberState::Gone);
            continue;
        }
        let detail = if health.is_ready() { "it runs" } else { "it is not ready" };
        let reason = HoldReason::NotAvailable { detail: detail.to_owned() };
        members.add(pod.name().clone(), MemberState::Moving, Some(reason), None);
    }
    if job.waits_for_terminating {
        members.group.count_many(MemberState::Gone, crate::count(job.terminating));
    }
    for _ in &decision.indexes {
        members.group.count(MemberState::Moving);
    }
    for (index, reason, until) in &decision.index_holds {
        let name = format!("index {index}");
        members.add(name, MemberState::Waiting, Some(reason.clone()), Some(*until));
    }
    match &decision.creation.hold {
        Some(reason @ HoldReason::Failed { .. }) => {
            let until = decision.backs_off_until;
            members.add("next pod", MemberState::Waiting, Some(reason.clone()), until);
        }
        Some(reason @ HoldReason::Depends { .. }) => {
            members.add("next pod", MemberState::Waiting, Some(reason.clone()), None);
        }
        Some(reason) => members.hold(reason.clone()),
        None => {}
    }
    end(job, decision, &mut members);
    members
}

fn end(job: &Job<'_>, decision: &JobDecision<'_>, members: &mut Members) {
    match &decision.end {
        None if job.is_suspended => {}
        None => members.wake_at = job.deadline(job.started_at.or(Some(job.now))),
        Some(end) if !end.is_reached => {
            let on = "its last pods to be gone and counted".to_owned();
            let hold = Some(HoldReason::Depends { on });
            members.add("completion", MemberState::Moving, hold, None);
        }
        Some(end) if end.is_success => members.group.count(MemberState::Done),
        Some(_) => members.group.count(MemberState::Failed),
    }
}
