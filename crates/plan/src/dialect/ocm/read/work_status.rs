//! How far one cluster is with the template it was given, from the conditions of its work.

use convoy_api::Object;
use convoy_api::object::meta::timestamp;
use convoy_api::ocm::names::HANDED_OUT_AT;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::strategy::Strategy;
use crate::dialect::ocm::names::{APPLIED, AVAILABLE, DEGRADED, PROGRESSING};

/// What a work with the current template reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStatus {
    /// The agent has not spoken about this generation yet.
    ToApply,
    Progressing,
    Succeeded,
    Failed,
}

/// A status, and since when it holds where that is known.
pub type DatedStatus = (WorkStatus, Option<Timestamp>);

/// How far a cluster is at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RolloutStatus {
    /// Does not have the current template.
    Unstarted,
    /// Does not have it, and cannot get it before its former work is gone.
    Terminating,
    ToApply,
    Progressing {
        deadline: Option<Timestamp>,
    },
    Failed {
        deadline: Option<Timestamp>,
    },
    /// Successful, but not yet for long enough.
    Soaking {
        until: Timestamp,
    },
    Finished,
    TimedOut,
}

impl RolloutStatus {
    /// Takes a slot: it was started and is neither finished nor given up.
    pub(crate) fn is_in_flight(self) -> bool {
        matches!(
            self,
            Self::ToApply | Self::Progressing { .. } | Self::Failed { .. } | Self::Soaking { .. }
        )
    }

    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failed { .. } | Self::TimedOut)
    }

    /// When time alone changes it.
    pub(crate) fn recheck_at(self) -> Option<Timestamp> {
        match self {
            Self::Progressing { deadline } | Self::Failed { deadline } => deadline,
            Self::Soaking { until } => Some(until),
            _ => None,
        }
    }

    /// What a work status means at `now` under a strategy.
    pub(crate) fn of(reported: DatedStatus, strategy: &Strategy, now: Timestamp) -> Self {
        let (status, since) = reported;
        let since = since.unwrap_or(now);
        let deadline = strategy.progress_deadline.map(|length| later(since, length));
        let missed = deadline.is_some_and(|deadline| now >= deadline);
        match status {
            WorkStatus::ToApply => Self::ToApply,
            WorkStatus::Progressing | WorkStatus::Failed if missed => Self::TimedOut,
            WorkStatus::Progressing => Self::Progressing { deadline },
            WorkStatus::Failed => Self::Failed { deadline },
            WorkStatus::Succeeded => match later(since, strategy.min_success_time) {
                until if now < until => Self::Soaking { until },
                _ => Self::Finished,
            },
        }
    }
}

/// What `work` reports about its present generation.
///
/// With a `Progressing` condition that one decides; without, being available is success.
/// Nothing is older than the hand-out of the template: a condition that stays true over a
/// change keeps its old time.
pub(crate) fn work_status(work: &Object) -> DatedStatus {
    let conditions = Conditions::read(work);
    let (status, since) = if conditions.progressing.is_some() {
        conditions.by_progress()
    } else {
        conditions.by_availability()
    };
    let handed_out = work.annotation(HANDED_OUT_AT).and_then(|at| at.parse().ok());
    let since = match (since, handed_out) {
        (Some(since), Some(handed_out)) => Some(Timestamp::max(since, handed_out)),
        (since, handed_out) => since.or(handed_out),
    };
    (status, since)
}

struct Conditions<'o> {
    generation: i64,
    applied: Option<&'o Value>,
    available: Option<&'o Value>,
    progressing: Option<&'o Value>,
    degraded: Option<&'o Value>,
}

impl<'o> Conditions<'o> {
    fn read(work: &'o Object) -> Self {
        Self {
            generation: work.generation(),
            applied: work.condition(APPLIED),
            available: work.condition(AVAILABLE),
            progressing: work.condition(PROGRESSING),
            degraded: work.condition(DEGRADED),
        }
    }

    /// Whether a condition speaks about the present generation.
    fn is_current(&self, condition: &Value) -> bool {
        condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0) == self.generation
    }

    /// The same, or the condition does not say which generation it means.
    fn is_current_or_silent(&self, condition: &Value) -> bool {
        condition.get("observedGeneration").is_none_or(Value::is_null) || self.is_current(condition)
    }

    fn by_progress(&self) -> DatedStatus {
        let applied = self.applied.is_some_and(|c| self.is_current(c) && says(c, "True"));
        let fresh = |condition: Option<&Value>| condition.is_none_or(|c| self.is_current(c));
        if !applied || !fresh(self.progressing) || !fresh(self.degraded) {
            return (WorkStatus::ToApply, None);
        }
        let progressing = self.progressing.unwrap_or(&Value::Null);
        let degraded = self.degraded.filter(|c| says(c, "True"));
        match degraded {
            Some(degraded) if says(progressing, "True") => (WorkStatus::Failed, since(degraded)),
            _ if says(progressing, "False") => (WorkStatus::Succeeded, since(progressing)),
            _ => (WorkStatus::Progressing, since(progressing)),
        }
    }

    fn by_availability(&self) -> DatedStatus {
        let Some(applied) = self.applied.filter(|c| self.is_current(c)) else {
            return (WorkStatus::ToApply, None);
        };
        if says(applied, "False") {
            return (WorkStatus::Failed, since(applied));
        }
        if !says(applied, "True") {
            return (WorkStatus::ToApply, None);
        }
        let holds = |condition: Option<&'o Value>| {
            condition.filter(|c| says(c, "True") && self.is_current_or_silent(c))
        };
        if let Some(degraded) = holds(self.degraded) {
            return (WorkStatus::Failed, since(degraded));
        }
        if let Some(available) = holds(self.available) {
            return (WorkStatus::Succeeded, since(available));
        }
        let available = self.available.and_then(since);
        (WorkStatus::Progressing, since(applied).into_iter().chain(available).max())
    }
}

fn says(condition: &Value, status: &str) -> bool {
    condition.get("status").and_then(Value::as_str) == Some(status)
}

fn since(condition: &Value) -> Option<Timestamp> {
    timestamp(condition.get("lastTransitionTime"))
}

/// `length` after `instant`; beyond the calendar is its end.
fn later(instant: Timestamp, length: SignedDuration) -> Timestamp {
    instant.checked_add(length).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;

    const EARLY: &str = "2025-12-31T23:00:00Z";

    /// `(type, status, observedGeneration)`.
    type Conditions = &'static [(&'static str, &'static str, i64)];

    /// A work of generation 2.
    fn work(conditions: Conditions) -> Object {
        let entries = conditions.iter().map(|(kind, status, generation)| {
            json!({"type": kind, "status": status, "observedGeneration": generation,
                "lastTransitionTime": EARLY})
        });
        object("work.open-cluster-management.io/v1", "ManifestWork", "w")
            .with("/metadata/generation", json!(2))
            .status(json!({"conditions": entries.collect::<Vec<_>>()}))
            .build()
    }

    #[test]
    fn a_progressing_condition_decides_where_there_is_one() {
        const APPLIED: (&str, &str, i64) = ("Applied", "True", 2);
        const MOVING: (&str, &str, i64) = ("Progressing", "True", 2);
        let cases: [(Conditions, WorkStatus); 9] = [
            (&[MOVING], WorkStatus::ToApply),
            (&[("Applied", "True", 1), MOVING], WorkStatus::ToApply),
            (&[("Applied", "False", 2), MOVING], WorkStatus::ToApply),
            (&[APPLIED, ("Progressing", "True", 1)], WorkStatus::ToApply),
            (&[APPLIED, MOVING, ("Degraded", "False", 1)], WorkStatus::ToApply),
            (&[APPLIED, MOVING], WorkStatus::Progressing),
            (&[APPLIED, MOVING, ("Degraded", "True", 2)], WorkStatus::Failed),
            (
                &[APPLIED, ("Progressing", "False", 2), ("Degraded", "True", 2)],
                WorkStatus::Succeeded,
            ),
            (&[APPLIED, ("Progressing", "Unknown", 2)], WorkStatus::Progressing),
        ];
        for (conditions, expected) in cases {
            assert_eq!(work_status(&work(conditions)).0, expected, "{conditions:?}");
        }
    }

    #[test]
    fn without_one_being_available_is_success() {
        const APPLIED: (&str, &str, i64) = ("Applied", "True", 2);
        let cases: [(Conditions, WorkStatus); 8] = [
            (&[], WorkStatus::ToApply),
            (&[("Applied", "True", 1), ("Available", "True", 2)], WorkStatus::ToApply),
            (&[("Applied", "Unknown", 2)], WorkStatus::ToApply),
            (&[("Applied", "False", 2)], WorkStatus::Failed),
            (&[APPLIED, ("Degraded", "True", 2), ("Available", "True", 2)], WorkStatus::Failed),
            (&[APPLIED, ("Available", "True", 2)], WorkStatus::Succeeded),
            (&[APPLIED, ("Available", "True", 1)], WorkStatus::Progressing),
            (&[APPLIED], WorkStatus::Progressing),
        ];
        for (conditions, expected) in cases {
            assert_eq!(work_status(&work(conditions)).0, expected, "{conditions:?}");
        }
    }

    #[test]
    fn nothing_is_older_than_the_hand_out() {
        let old = work(&[("Applied", "True", 2), ("Available", "True", 2)]);
        assert_eq!(work_status(&old).1, Some(EARLY.parse().unwrap()));
        let mut raw = old.raw().clone();
        raw["metadata"]["annotations"] = json!({HANDED_OUT_AT: "2025-12-31T23:30:00Z"});
        let again = old.with_raw(raw);
        assert_eq!(work_status(&again).1, Some("2025-12-31T23:30:00Z".parse().unwrap()));
    }
}
