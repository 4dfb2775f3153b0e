//! The status of a Job.

use std::collections::BTreeSet;

use convoy_api::ObjectKey;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition, instant};
use crate::dialect::workloads::decide::job::JobDecision;
use crate::dialect::workloads::decide::job_end::JobEnd;
use crate::dialect::workloads::names::{
    COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED,
};
use crate::dialect::workloads::read::job::Job;

/// The fields that change; nothing of a Job that has ended does.
pub(crate) fn status(job: &Job<'_>, decision: &JobDecision<'_>) -> Map<String, Value> {
    if job.is_finished() {
        return Map::new();
    }
    let mut status = counted(job, decision);
    if job.owner.is_deleting() {
        return status;
    }
    let mut conditions = job.conditions().to_vec();
    suspension(job, &mut status, &mut conditions);
    if let Some(end) = &decision.end {
        declare(job, end, &mut status, &mut conditions);
    }
    if conditions != job.conditions() {
        status.insert("conditions".to_owned(), Value::Array(conditions));
    }
    status
}

/// The counts, as they stand once the step's deletions are carried out.
fn counted(job: &Job<'_>, decision: &JobDecision<'_>) -> Map<String, Value> {
    let tally = &job.tally;
    let mut waiting = Map::new();
    for (name, uids) in [("succeeded", &tally.waiting_succeeded), ("failed", &tally.waiting_failed)]
    {
        if !uids.is_empty() {
            waiting.insert(name.to_owned(), json!(uids));
        }
    }
    let succeeded =
        if job.is_indexed { json!(tally.completed.len()) } else { json!(tally.counted_succeeded) };
    let removed: BTreeSet<&ObjectKey> =
        decision.removals.iter().map(|(pod, _)| pod.key()).collect();
    let staying = job.active.iter().filter(|(pod, _)| !removed.contains(pod.key()));
    let ready = staying.clone().filter(|(_, health)| health.is_ready()).count();
    let mut status = Map::new();
    let mut put = |name: &str, value: Value| status.insert(name.to_owned(), value);
    put("succeeded", succeeded);
    put("failed", json!(tally.counted_failed));
    put("uncountedTerminatedPods", Value::Object(waiting));
    if job.is_indexed {
        put("completedIndexes", json!(tally.completed.text()));
    }
    if let Some(failed) = &tally.failed_indexes {
        put("failedIndexes", json!(failed.text()));
    }
    put("active", json!(staying.count()));
    put("ready", json!(ready));
    put("terminating", json!(job.terminating + decision.removals.len()));
    status
}

/// Records that the Job stands still or goes on, and when it began.
fn suspension(job: &Job<'_>, status: &mut Map<String, Value>, conditions: &mut Vec<Value>) {
    let mut say = |word: &'static str, reason: &'static str, message: &'static str| {
        let condition = Condition::new(SUSPENDED, word, reason, message);
        condition::set(conditions, &condition, job.now);
    };
    match (job.was_suspended(), job.is_suspended) {
        (false, true) => say("True", "JobSuspended", "Job suspended"),
        (true, false) => say("False", "JobResumed", "Job resumed"),
        _ => {}
    }
    if job.is_suspended {
        status.insert("startTime".to_owned(), Value::Null);
    } else if job.owner.status_member("startTime").is_none_or(Value::is_null) {
        status.insert("startTime".to_owned(), instant(job.now));
    }
}

/// Says that the end is certain, and once no pod is left, that it is reached.
fn declare(
    job: &Job<'_>,
    end: &JobEnd,
    status: &mut Map<String, Value>,
    conditions: &mut Vec<Value>,
) {
    let (target, reached) =
        if end.is_success { (SUCCESS_CRITERIA_MET, COMPLETE) } else { (FAILURE_TARGET, FAILED) };
    let say = |kind: &'static str| {
        Condition::new(kind, "True", end.reason.as_str(), end.message.as_str())
    };
    condition::set(conditions, &say(target), job.now);
    if !end.is_reached {
        return;
    }
    condition::set(conditions, &say(reached), job.now);
    if end.is_success {
        status.insert("completionTime".to_owned(), instant(job.now));
    }
}
