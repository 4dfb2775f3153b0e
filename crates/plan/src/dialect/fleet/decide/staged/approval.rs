//! Approvals before and after stages: a request object per task, that a person approves. Once
//! accepted, an approval cannot be taken back.

use super::stages::{self, Task};
use super::{Change, Halt, Pass};
use crate::dialect::fleet::names::{ACCEPTED, APPROVED, Family, REQUEST_APPROVED, REQUEST_CREATED};
use crate::dialect::fleet::read::run::{Node, approval_subject, current_status};
use crate::dialect::fleet::read::strategy::When;

/// The request that the stage still waits for before it begins; None: it may begin.
pub(super) fn before(pass: &mut Pass<'_, '_>, stage: usize) -> Result<Option<String>, Halt> {
    let tasks = stages::tasks(&pass.record.config(stage), When::Before)?;
    for (at, task) in tasks.into_iter().enumerate() {
        if task != Task::Approval {
            return Err(Halt::abort("a TimedWait is not possible before a stage".to_owned()));
        }
        let Some(mut node) = pass.record.stages[stage].before.get(at).cloned() else { continue };
        let pending = request(pass, &mut node, stage, When::Before)?;
        pass.record.stages[stage].before[at] = node;
        if pending.is_some() {
            return Ok(pending);
        }
    }
    Ok(None)
}

/// The request of the task at `at` after the stage, unless it is approved.
pub(super) fn after(
    pass: &mut Pass<'_, '_>,
    stage: usize,
    at: usize,
) -> Result<Option<String>, Halt> {
    let Some(mut node) = pass.record.stages[stage].after.get(at).cloned() else {
        return Ok(None);
    };
    let pending = request(pass, &mut node, stage, When::After)?;
    pass.record.stages[stage].after[at] = node;
    Ok(pending)
}

/// Asks for the approval if nobody has; accepts it if it is given.
fn request(
    pass: &mut Pass<'_, '_>,
    task: &mut Node,
    stage: usize,
    when: When,
) -> Result<Option<String>, Halt> {
    if task.is_true(REQUEST_APPROVED) {
        return Ok(None);
    }
    let request = task.approval_request().to_owned();
    let stage = pass.record.stages[stage].name().to_owned();
    let why = ("StageTaskApprovalRequestCreated", "the approval request exists");
    task.set(pass.stamp, REQUEST_CREATED, "True", why);
    let kind = Family::of(pass.run).approval_request();
    let Some(found) = pass.snapshot.find(&kind, pass.run.namespace(), &request) else {
        let asked = Change::ApprovalRequested { request: request.clone(), stage, when };
        pass.changes.push(asked);
        return Ok(Some(request));
    };
    let subject = approval_subject(found);
    let (run, target) = (subject.parent_stage_rollout, subject.target_stage);
    if run != pass.run.name().as_str() || target != stage {
        return Err(Halt::abort(format!(
            "approval request {request} is for stage {target} of run {run}, not for {stage} of {}",
            pass.run.name()
        )));
    }
    let accepted = current_status(found, ACCEPTED) == Some("True");
    let approved = current_status(found, APPROVED) == Some("True");
    if !accepted && !approved {
        return Ok(Some(request));
    }
    if !accepted {
        pass.changes.push(Change::ApprovalAccepted { request: found, stage });
    }
    let why = ("StageTaskApprovalRequestApproved", "the approval request is approved");
    task.set(pass.stamp, REQUEST_APPROVED, "True", why);
    Ok(None)
}
