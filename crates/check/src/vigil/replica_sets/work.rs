//! How far a cluster is with the template that its work holds, by the conditions of the work.

use convoy_api::Object;
use convoy_api::object::member::{field, text};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::strategy::Strategy;

const HANDED_OUT_AT: &str = "convoy.dev/handed-out-at";

/// What matters of a `ManifestWork`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// The number of the template that it holds.
    pub(super) template: usize,
    pub(super) is_deleting: bool,
    report: Report,
    since: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Silent,
    Progressing,
    Succeeded,
    Failed,
}

/// Where a cluster is in a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Unstarted,
    /// Its former work is on its way out, so it cannot start yet.
    Blocked,
    Working,
    Failed,
    TimedOut,
    Finished,
}

impl Stage {
    pub(super) fn is_in_flight(self) -> bool {
        matches!(self, Self::Working | Self::Failed)
    }

    pub(super) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut)
    }
}

impl Work {
    pub(super) fn read(object: &Object, template: usize) -> Self {
        let (report, since) = report(object);
        let handed_out = object.annotation(HANDED_OUT_AT).and_then(|at| at.parse().ok());
        Self {
            template,
            is_deleting: object.is_deleting(),
            report,
            since: since.max(handed_out), // None is before everything
        }
    }

    /// Where it is at `now` in a rollout of this template.
    pub(super) fn stage(&self, template: usize, strategy: &Strategy, now: Timestamp) -> Stage {
        if self.is_deleting {
            return Stage::Blocked;
        }
        if self.template != template {
            return Stage::Unstarted;
        }
        let since = self.since.unwrap_or(now);
        let is_over =
            |period: SignedDuration| since.checked_add(period).is_ok_and(|until| now >= until);
        match self.report {
            Report::Succeeded if is_over(strategy.soak) => Stage::Finished,
            Report::Progressing | Report::Failed if strategy.deadline.is_some_and(is_over) => {
                Stage::TimedOut
            }
            Report::Silent | Report::Progressing | Report::Succeeded => Stage::Working,
            Report::Failed => Stage::Failed,
        }
    }
}

/// What the agent reports about the present generation, and since when.
fn report(work: &Object) -> (Report, Option<Timestamp>) {
    let condition = |kind: &str| work.condition(kind);
    let is_current = |it: &Value| field(it, "observedGeneration") == work.generation();
    let is_said = |it: &Value, word: &str| text(it, "status") == word;
    let since = |it: &Value| timestamp(it.get("lastTransitionTime"));
    let applied = condition("Applied").filter(|it| is_current(it));
    let degraded = condition("Degraded");
    if let Some(progressing) = condition("Progressing") {
        let is_stale = !applied.is_some_and(|it| is_said(it, "True"))
            || !is_current(progressing)
            || degraded.is_some_and(|it| !is_current(it));
        if is_stale {
            return (Report::Silent, None);
        }
        return match degraded.filter(|it| is_said(it, "True")) {
            Some(degraded) if is_said(progressing, "True") => (Report::Failed, since(degraded)),
            _ if is_said(progressing, "False") => (Report::Succeeded, since(progressing)),
            _ => (Report::Progressing, since(progressing)),
        };
    }
    let Some(applied) = applied else { return (Report::Silent, None) };
    match text(applied, "status") {
        "False" => return (Report::Failed, since(applied)),
        "True" => {}
        _ => return (Report::Silent, None),
    }
    let is_true = |it: &&Value| {
        is_said(it, "True") && (is_current(it) || field(it, "observedGeneration").is_null())
    };
    if let Some(degraded) = degraded.filter(is_true) {
        return (Report::Failed, since(degraded));
    }
    let available = condition("Available");
    if let Some(available) = available.filter(is_true) {
        return (Report::Succeeded, since(available));
    }
    (Report::Progressing, since(applied).max(available.and_then(since)))
}
