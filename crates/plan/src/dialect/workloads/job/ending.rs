//! How a Job ends: complete, or failed, and why.

use convoy_api::Object;
use convoy_api::object::member::member;
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::super::kept::number;
use super::super::outcome::Outcome;
use super::Job;
use crate::condition::{self, Condition, instant};
use crate::hold::HoldReason;
use crate::step::{EventType, MemberState};

/// How often pods may fail where the Job does not say.
const BACKOFF_LIMIT: i64 = 6;

/// A Job whose end is certain, though pods of it may still have to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    is_success: bool,
    reason: String,
    message: String,
}

/// Whether it is over, and since when.
pub(super) fn finished(owner: &Object) -> Option<(bool, Option<Timestamp>)> {
    [("Complete", true), ("Failed", false)].into_iter().find_map(|(kind, is_success)| {
        let entry = owner.condition(kind)?;
        let since = timestamp(member(entry, "lastTransitionTime"));
        (owner.condition_status(kind) == Some("True")).then_some((is_success, since))
    })
}

impl Ending {
    pub(super) fn of(job: &Job<'_>) -> Option<Self> {
        Self::announced(job).or_else(|| Self::failed(job)).or_else(|| Self::complete(job))
    }

    /// What was declared before stays.
    fn announced(job: &Job<'_>) -> Option<Self> {
        [("SuccessCriteriaMet", true), ("FailureTarget", false)].into_iter().find_map(
            |(kind, is_success)| {
                let entry = job.owner.condition(kind)?;
                let text = |name: &str| {
                    member(entry, name).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                (job.owner.condition_status(kind) == Some("True")).then(|| Self {
                    is_success,
                    reason: text("reason"),
                    message: text("message"),
                })
            },
        )
    }

    fn failed(job: &Job<'_>) -> Option<Self> {
        let fail = |reason: &str, message: &str| {
            let (reason, message) = (reason.to_owned(), message.to_owned());
            Some(Self { is_success: false, reason, message })
        };
        let limit = number(job.owner.spec(), "backoffLimit").unwrap_or(BACKOFF_LIMIT);
        if i64::try_from(job.tally.failed).unwrap_or(i64::MAX) > limit {
            return fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        }
        let deadline = job.deadline(&Map::new()).filter(|_| !job.is_suspended);
        if deadline.is_some_and(|deadline| deadline <= job.now) {
            return fail("DeadlineExceeded", "Job was active longer than specified deadline");
        }
        None
    }

    fn complete(job: &Job<'_>) -> Option<Self> {
        let is_complete = match job.completions {
            Some(completions) => job.tally.succeeded >= completions,
            None => job.tally.succeeded > 0 && job.active.is_empty(),
        };
        is_complete.then(|| Self {
            is_success: true,
            reason: "CompletionsReached".to_owned(),
            message: "Reached expected number of succeeded pods".to_owned(),
        })
    }

    pub(super) fn why(&self) -> String {
        format!("{}: {}", self.reason, self.message)
    }

    /// Says that the end is certain, and once no pod is left, that it is reached.
    pub(super) fn declare(
        &self,
        job: &Job<'_>,
        status: &mut Map<String, Value>,
        conditions: &mut Vec<Value>,
        outcome: &mut Outcome<'_>,
    ) {
        let (target, end) = if self.is_success {
            ("SuccessCriteriaMet", "Complete")
        } else {
            ("FailureTarget", "Failed")
        };
        let say = |kind: &'static str| Condition {
            kind: kind.into(),
            status: "True",
            reason: self.reason.as_str().into(),
            message: self.message.as_str().into(),
            observed_generation: None,
        };
        condition::set(conditions, &say(target), job.now);
        if !job.kept.pods.iter().all(|pod| super::is_over(pod)) || !job.tally.is_settled() {
            let on = "its last pods to be gone and counted".to_owned();
            let hold = Some(HoldReason::Depends { on });
            return outcome.member("the end", MemberState::Moving, hold, None);
        }
        condition::set(conditions, &say(end), job.now);
        if self.is_success {
            status.insert("completionTime".to_owned(), instant(job.now));
            outcome.tell(EventType::Normal, "Completed", "Job completed".to_owned());
        } else {
            outcome.tell(EventType::Warning, &self.reason, self.message.clone());
        }
        outcome.group.count(if self.is_success { MemberState::Done } else { MemberState::Failed });
    }
}
