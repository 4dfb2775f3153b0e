//! How a Job ends: complete, or failed, and why.

use super::success_policy::rule_met;
use crate::dialect::workloads::read::job::Job;
use crate::pods::is_finished;

/// A Job whose end is certain, though pods of it may still be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobEnd {
    pub(crate) is_success: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Every pod is finished and counted.
    pub(crate) is_reached: bool,
}

impl JobEnd {
    pub(super) fn of(job: &Job<'_>) -> Option<Self> {
        let end = announced(job).or_else(|| failed(job)).or_else(|| complete(job));
        let (is_success, reason, message) = end?;
        let is_reached = job.pods.all.iter().all(|pod| is_finished(pod)) && job.tally.is_settled();
        Some(Self { is_success, reason, message, is_reached })
    }
}

/// Whether it is a success, the reason and the message.
type End = (bool, String, String);

fn failure(reason: &str, message: &str) -> End {
    (false, reason.to_owned(), message.to_owned())
}

/// An end that was announced before stays.
fn announced(job: &Job<'_>) -> Option<End> {
    let (is_success, reason, message) = job.announced_end()?;
    Some((is_success, reason.to_owned(), message.to_owned()))
}

fn failed(job: &Job<'_>) -> Option<End> {
    if let Some(message) = &job.tally.job_failure {
        return Some(failure("PodFailurePolicy", message));
    }
    let is_beyond = i64::try_from(job.tally.failed).unwrap_or(i64::MAX) > job.backoff_limit;
    if is_beyond || restarts_too_often(job) {
        let message = "Job has reached the specified backoff limit";
        return Some(failure("BackoffLimitExceeded", message));
    }
    let deadline = job.deadline(job.started_at).filter(|_| !job.is_suspended);
    if deadline.is_some_and(|deadline| deadline <= job.now) {
        let message = "Job was active longer than specified deadline";
        return Some(failure("DeadlineExceeded", message));
    }
    failed_by_index(job)
}

/// Where failed containers start again in their pod, the limit is of their restarts.
fn restarts_too_often(job: &Job<'_>) -> bool {
    let restarts = job.restarts();
    restarts.is_some_and(|restarts| restarts > 0 && restarts >= job.backoff_limit)
}

/// Too many indexes have failed, or no other is left.
fn failed_by_index(job: &Job<'_>) -> Option<End> {
    let failed = job.tally.failed_indexes.as_ref()?.len();
    let most = job.max_failed_indexes.and_then(|most| usize::try_from(most).ok());
    if most.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(failure("MaxFailedIndexesExceeded", message));
    }
    let is_last = job.settled_count() >= job.completions.unwrap_or(0);
    (failed > 0 && is_last).then(|| failure("FailedIndexes", "Job has failed indexes"))
}

fn complete(job: &Job<'_>) -> Option<End> {
    if let Some(rule) = rule_met(job) {
        return Some((true, "SuccessPolicy".to_owned(), format!("Matched rules at index {rule}")));
    }
    let is_complete = match job.completions {
        Some(completions) => job.tally.succeeded >= completions,
        None => job.tally.succeeded > 0 && job.active.is_empty(),
    };
    let message = "Reached expected number of succeeded pods";
    is_complete.then(|| (true, "CompletionsReached".to_owned(), message.to_owned()))
}
