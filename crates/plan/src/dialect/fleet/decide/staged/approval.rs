//! Approvals before and after stages: a request object per task, that a person approves. Once
//! accepted, an approval cannot be taken back.

use serde_json::{Value, json};

use crate::condition::{self, Condition};
use crate::dialect::fleet::decide::staged::scope::current_status;
use crate::dialect::fleet::decide::staged::stages::{self, Task};
use crate::dialect::fleet::decide::staged::{Halt, Pass};
use crate::dialect::fleet::names::{Family, LATEST_APPROVAL, TARGET_RUN, TARGET_STAGE, TASK_TYPE};
use crate::dialect::fleet::read::placement::{list, text};
use crate::dialect::fleet::read::run::Node;
use crate::step::{Action, Verb, Why};

const APPROVED: &str = "Approved";
const ACCEPTED: &str = "ApprovalAccepted";
const REQUEST_CREATED: &str = "ApprovalRequestCreated";
const REQUEST_APPROVED: &str = "ApprovalRequestApproved";

/// The request that the stage still waits for before it begins; None: it may begin.
pub(crate) fn before(pass: &mut Pass<'_, '_>, stage: usize) -> Result<Option<String>, Halt> {
    let tasks = stages::tasks(&pass.config(stage), "beforeStageTasks")?;
    for (at, task) in tasks.into_iter().enumerate() {
        if task != Task::Approval {
            return Err(Halt::abort("a TimedWait is not possible before a stage".to_owned()));
        }
        let Some(mut node) = pass.record.stages[stage].before.get(at).cloned() else { continue };
        let pending = request(pass, &mut node, stage, "beforeStage")?;
        pass.record.stages[stage].before[at] = node;
        if pending.is_some() {
            return Ok(pending);
        }
    }
    Ok(None)
}

/// The request of the task at `at` after the stage, unless it is approved.
pub(crate) fn after(
    pass: &mut Pass<'_, '_>,
    stage: usize,
    at: usize,
) -> Result<Option<String>, Halt> {
    let Some(mut node) = pass.record.stages[stage].after.get(at).cloned() else {
        return Ok(None);
    };
    let pending = request(pass, &mut node, stage, "afterStage")?;
    pass.record.stages[stage].after[at] = node;
    Ok(pending)
}

/// Creates the request if it is missing; accepts the approval if it is there.
fn request(
    pass: &mut Pass<'_, '_>,
    task: &mut Node,
    stage: usize,
    kind: &str,
) -> Result<Option<String>, Halt> {
    if task.is_true(REQUEST_APPROVED) {
        return Ok(None);
    }
    let name = task.text("approvalRequestName").to_owned();
    let stage = pass.record.stages[stage].name().to_owned();
    let why = ("StageTaskApprovalRequestCreated", "the approval request exists");
    task.set(pass.stamp, REQUEST_CREATED, "True", why);
    let key = Family::of(pass.run).approval_request();
    let Some(found) = pass.snapshot.find(&key, pass.run.namespace(), &name) else {
        let body = body(pass, &name, &stage, kind);
        let target = pass.run.key().sibling(&key, pass.run.namespace(), &name);
        let why = Why::new("ApprovalNeeded", format!("stage {stage} needs an approval"));
        pass.actions.push(Action::create(Verb::Create, target, body, why));
        return Ok(Some(name));
    };
    let (run, target) =
        (text(found.spec(), "parentStageRollout"), text(found.spec(), "targetStage"));
    if run != pass.run.name() || target != stage {
        return Err(Halt::abort(format!(
            "approval request {name} is for stage {target} of run {run}, not for {stage} of {}",
            pass.run.name()
        )));
    }
    let accepted = current_status(found, ACCEPTED) == Some("True");
    let approved = current_status(found, APPROVED) == Some("True");
    if !accepted && !approved {
        return Ok(Some(name));
    }
    if !accepted {
        let mut conditions = list(found.status(), "conditions").to_vec();
        let wanted = Condition {
            kind: ACCEPTED.into(),
            status: "True",
            reason: "ApprovalRequestApprovalAccepted".into(),
            message: "the approval is accepted and cannot be taken back".into(),
            observed_generation: Some(found.generation()),
        };
        condition::set(&mut conditions, &wanted, pass.stamp.now);
        let why = Why::new("Approved", format!("stage {stage} is approved"));
        let patch = json!({"status": {"conditions": conditions}});
        pass.actions.push(Action::patch_status(Verb::Record, found, patch, why));
    }
    let why = ("StageTaskApprovalRequestApproved", "the approval request is approved");
    task.set(pass.stamp, REQUEST_APPROVED, "True", why);
    Ok(None)
}

fn body(pass: &Pass<'_, '_>, name: &str, stage: &str, kind: &str) -> Value {
    let run = pass.run;
    let mut metadata = json!({"name": name, "labels": {
        TARGET_STAGE: stage, TARGET_RUN: run.name(), TASK_TYPE: kind, LATEST_APPROVAL: "true"}});
    if !run.namespace().is_empty() {
        metadata["namespace"] = json!(run.namespace());
    }
    json!({
        "apiVersion": run.api_version(),
        "kind": Family::of(run).approval_request().kind,
        "metadata": metadata,
        "spec": {"parentStageRollout": run.name(), "targetStage": stage},
    })
}
