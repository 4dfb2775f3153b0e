//! How long the stages of an update run and their approvals took, by the conditions of its status.

use convoy_api::object::member::{list, text};
use jiff::Timestamp;
use serde_json::Value;

use super::strategy::When;
use crate::condition::dated::Entry;
use crate::dialect::fleet::names::{PROGRESSING, REQUEST_APPROVED, REQUEST_CREATED};

/// How long the clusters of each stage took, of the stages in which all of them are updated.
pub(crate) fn updating(status: &Value) -> Vec<u32> {
    list(status, "stagesStatus").iter().filter_map(stage_updating).collect()
}

fn stage_updating(stage: &Value) -> Option<u32> {
    let waits = Entry::within(stage, PROGRESSING).filter(|found| found.status() == "False")?;
    let is_skipped = waits.reason() == "StageUpdatingSkippedNoClusters";
    let began: Timestamp = text(stage, "startTime").parse().ok()?;
    if is_skipped { None } else { elapsed(began, waits.changed_at()?) }
}

/// How long each request before or after a stage waited for its approval.
pub(crate) fn approving(status: &Value, when: When) -> Vec<u32> {
    let field = match when {
        When::Before => "beforeStageTaskStatus",
        When::After => "afterStageTaskStatus",
    };
    let tasks = list(status, "stagesStatus").iter().flat_map(|stage| list(stage, field));
    tasks.filter_map(task_approving).collect()
}

fn task_approving(task: &Value) -> Option<u32> {
    let since = |kind: &str| Entry::within(task, kind).filter(|it| it.is_true())?.changed_at();
    elapsed(since(REQUEST_CREATED)?, since(REQUEST_APPROVED)?)
}

fn elapsed(from: Timestamp, to: Timestamp) -> Option<u32> {
    u32::try_from(to.as_second().saturating_sub(from.as_second())).ok()
}
