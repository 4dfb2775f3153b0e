//! Where one cluster stands with the template it was given, from the conditions of its work.

use convoy_api::Object;
use convoy_api::object::meta::timestamp;
use convoy_api::ocm::names::HANDED_OUT_AT;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::dialect::ocm::read::strategy::Strategy;

/// What a work with the current template reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The agent has not spoken about this generation yet.
    ToApply,
    Progressing,
    Succeeded,
    Failed,
}

/// A report, and since when it holds where that is known.
pub(crate) type Dated = (Report, Option<Timestamp>);

/// Where a cluster stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Does not have the current template.
    Unstarted,
    /// Does not have it, and cannot get it before its old work is gone.
    Leaving,
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

impl Standing {
    /// Takes a slot: it was started and is neither finished nor given up.
    pub(crate) fn is_in_flight(self) -> bool {
        matches!(
            self,
            Self::ToApply | Self::Progressing { .. } | Self::Failed { .. } | Self::Soaking { .. }
        )
    }

    pub(crate) fn is_unstarted(self) -> bool {
        matches!(self, Self::Unstarted | Self::Leaving)
    }

    /// When time alone changes it.
    pub(crate) fn recheck(self) -> Option<Timestamp> {
        match self {
            Self::Progressing { deadline } | Self::Failed { deadline } => deadline,
            Self::Soaking { until } => Some(until),
            _ => None,
        }
    }

    /// What a dated report means at `now` under a strategy.
    pub(crate) fn of(report: Dated, strategy: &Strategy, now: Timestamp) -> Self {
        let (report, since) = report;
        let since = since.unwrap_or(now);
        let deadline = strategy.deadline.map(|length| later(since, length));
        let missed = deadline.is_some_and(|deadline| now >= deadline);
        match report {
            Report::ToApply => Self::ToApply,
            Report::Progressing | Report::Failed if missed => Self::TimedOut,
            Report::Progressing => Self::Progressing { deadline },
            Report::Failed => Self::Failed { deadline },
            Report::Succeeded => match later(since, strategy.soak) {
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
pub(crate) fn report(work: &Object) -> Dated {
    let conditions = Conditions::read(work);
    let (report, since) = if conditions.progressing.is_some() {
        conditions.by_progress()
    } else {
        conditions.by_availability()
    };
    let handed_out = work.annotation(HANDED_OUT_AT).and_then(|at| at.parse().ok());
    let since = match (since, handed_out) {
        (Some(since), Some(handed_out)) => Some(Timestamp::max(since, handed_out)),
        (since, handed_out) => since.or(handed_out),
    };
    (report, since)
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
            applied: work.condition("Applied"),
            available: work.condition("Available"),
            progressing: work.condition("Progressing"),
            degraded: work.condition("Degraded"),
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

    fn by_progress(&self) -> Dated {
        let applied = self.applied.is_some_and(|c| self.is_current(c) && says(c, "True"));
        let fresh = |condition: Option<&Value>| condition.is_none_or(|c| self.is_current(c));
        if !applied || !fresh(self.progressing) || !fresh(self.degraded) {
            return (Report::ToApply, None);
        }
        let progressing = self.progressing.unwrap_or(&Value::Null);
        let degraded = self.degraded.filter(|c| says(c, "True"));
        match degraded {
            Some(degraded) if says(progressing, "True") => (Report::Failed, since(degraded)),
            _ if says(progressing, "False") => (Report::Succeeded, since(progressing)),
            _ => (Report::Progressing, since(progressing)),
        }
    }

    fn by_availability(&self) -> Dated {
        let Some(applied) = self.applied.filter(|c| self.is_current(c)) else {
            return (Report::ToApply, None);
        };
        if says(applied, "False") {
            return (Report::Failed, since(applied));
        }
        if !says(applied, "True") {
            return (Report::ToApply, None);
        }
        let holds = |condition: Option<&'o Value>| {
            condition.filter(|c| says(c, "True") && self.is_current_or_silent(c))
        };
        if let Some(degraded) = holds(self.degraded) {
            return (Report::Failed, since(degraded));
        }
        if let Some(available) = holds(self.available) {
            return (Report::Succeeded, since(available));
        }
        let available = self.available.and_then(since);
        (Report::Progressing, since(applied).into_iter().chain(available).max())
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
        let cases: [(Conditions, Report); 9] = [
            (&[MOVING], Report::ToApply),
            (&[("Applied", "True", 1), MOVING], Report::ToApply),
            (&[("Applied", "False", 2), MOVING], Report::ToApply),
            (&[APPLIED, ("Progressing", "True", 1)], Report::ToApply),
            (&[APPLIED, MOVING, ("Degraded", "False", 1)], Report::ToApply),
            (&[APPLIED, MOVING], Report::Progressing),
            (&[APPLIED, MOVING, ("Degraded", "True", 2)], Report::Failed),
            (&[APPLIED, ("Progressing", "False", 2), ("Degraded", "True", 2)], Report::Succeeded),
            (&[APPLIED, ("Progressing", "Unknown", 2)], Report::Progressing),
        ];
        for (conditions, expected) in cases {
            assert_eq!(report(&work(conditions)).0, expected, "{conditions:?}");
        }
    }

    #[test]
    fn without_one_being_available_is_success() {
        const APPLIED: (&str, &str, i64) = ("Applied", "True", 2);
        let cases: [(Conditions, Report); 8] = [
            (&[], Report::ToApply),
            (&[("Applied", "True", 1), ("Available", "True", 2)], Report::ToApply),
            (&[("Applied", "Unknown", 2)], Report::ToApply),
            (&[("Applied", "False", 2)], Report::Failed),
            (&[APPLIED, ("Degraded", "True", 2), ("Available", "True", 2)], Report::Failed),
            (&[APPLIED, ("Available", "True", 2)], Report::Succeeded),
            (&[APPLIED, ("Available", "True", 1)], Report::Progressing),
            (&[APPLIED], Report::Progressing),
        ];
        for (conditions, expected) in cases {
            assert_eq!(report(&work(conditions)).0, expected, "{conditions:?}");
        }
    }

    #[test]
    fn nothing_is_older_than_the_hand_out() {
        let old = work(&[("Applied", "True", 2), ("Available", "True", 2)]);
        assert_eq!(report(&old).1, Some(EARLY.parse().unwrap()));
        let mut raw = old.raw().clone();
        raw["metadata"]["annotations"] = json!({HANDED_OUT_AT: "2025-12-31T23:30:00Z"});
        let again = old.with_raw(raw);
        assert_eq!(report(&again).1, Some("2025-12-31T23:30:00Z".parse().unwrap()));
    }
}
