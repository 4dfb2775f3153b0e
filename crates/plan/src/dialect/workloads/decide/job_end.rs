//! How a Job ends: complete, or failed, and why.

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
        let (reason, message) = (reason.to_owned(), message.to_owned());
        let is_reached = job.pods.all.iter().all(|pod| is_finished(pod)) && job.tally.is_settled();
        Some(Self { is_success, reason, message, is_reached })
    }
}

type End<'o> = (bool, &'o str, &'o str);

/// An end that was announced before stays.
fn announced<'o>(job: &'o Job<'_>) -> Option<End<'o>> {
    job.announced_end()
}

fn failed<'o>(job: &Job<'_>) -> Option<End<'o>> {
    if i64::try_from(job.tally.failed).unwrap_or(i64::MAX) > job.backoff_limit {
        let message = "Job has reached the specified backoff limit";
        return Some((false, "BackoffLimitExceeded", message));
    }
    let deadline = job.deadline(job.started_at).filter(|_| !job.is_suspended);
    let message = "Job was active longer than specified deadline";
    deadline.is_some_and(|deadline| deadline <= job.now).then_some((
        false,
        "DeadlineExceeded",
        message,
    ))
}

fn complete<'o>(job: &Job<'_>) -> Option<End<'o>> {
    let is_complete = match job.completions {
        Some(completions) => job.tally.succeeded >= completions,
        None => job.tally.succeeded > 0 && job.active.is_empty(),
    };
    let message = "Reached expected number of succeeded pods";
    is_complete.then_some((true, "CompletionsReached", message))
}
