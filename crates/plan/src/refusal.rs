//! Refused objects take no part in the decisions of the dialect that refuses them. A member
//! that nobody can read would then look like one that left, and its work would be deleted or
//! its place given away. So whoever hangs on a refused object stands still and says so, and
//! everybody else goes on.
//!
//! A rollout says so in the condition [`REFUSED`] of its status and in an event.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use convoy_api::object::member::list;
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::condition::{self, Condition};
use crate::diagnostic::{Diagnostic, Severity};
use crate::dialect::Dialect;
use crate::hold::{Hold, HoldReason};
use crate::step::{Event, EventType, Step};
use crate::world::World;

/// The objects of a world that validation refuses, each with the first error about it.
#[derive(Debug)]
pub(crate) struct Refusals<'d> {
    diagnostics: &'d [Diagnostic],
    errors: BTreeMap<&'d ObjectKey, &'d Diagnostic>,
}

impl<'d> Refusals<'d> {
    pub(crate) fn among(diagnostics: &'d [Diagnostic]) -> Self {
        let mut errors = BTreeMap::new();
        for found in diagnostics.iter().filter(|found| found.severity == Severity::Error) {
            errors.entry(&found.key).or_insert(found);
        }
        Self { diagnostics, errors }
    }

    pub(crate) fn refuses(&self, key: &ObjectKey) -> bool {
        self.errors.contains_key(key)
    }

    /// The fields for which an object is refused; none if it is not.
    pub(crate) fn fields(&self, key: &ObjectKey) -> Vec<String> {
        self.errors_of(key).map(|found| found.field.clone()).collect()
    }

    fn errors_of(&self, key: &ObjectKey) -> impl Iterator<Item = &'d Diagnostic> {
        let is_refused = self.errors.contains_key(key);
        let found = if is_refused { self.diagnostics } else { &[] }.iter();
        found.filter(move |found| found.severity == Severity::Error && found.key == *key)
    }

    /// The world without what `dialect` refuses. What another one refuses is still there: to a
    /// placement that carries it to clusters, a Deployment is content like any other.
    pub(crate) fn sound<'w>(&self, dialect: &dyn Dialect, world: &'w World) -> Cow<'w, World> {
        let refused = self.errors.keys().filter(|key| dialect.validates(&key.kind));
        world.without(&refused.copied().cloned().collect::<BTreeSet<_>>())
    }

    /// What `rollout` waits for if it hangs on an object that `dialect` refuses.
    pub(crate) fn hold(
        &self,
        dialect: &dyn Dialect,
        world: &World,
        rollout: &Object,
    ) -> Option<Hold> {
        if !self.errors.keys().any(|key| dialect.validates(&key.kind)) {
            return None;
        }
        let seen = dialect.snapshot(world, rollout);
        let mut errors = seen.iter().filter_map(|object| {
            let error = self.errors.get(object.key())?;
            let concerned =
                dialect.validates(object.kind()) && dialect.hangs_on(world, rollout, object);
            concerned.then_some(*error)
        });
        let Diagnostic { object, field, message, .. } = errors.next()?;
        let others = u32::try_from(errors.count()).unwrap_or(u32::MAX);
        let (object, field, message) = (object.clone(), field.clone(), message.clone());
        Some(Hold::of_rollout(HoldReason::HangsOnRefused { object, field, message, others }))
    }
}

/// The condition of a rollout about which nothing is done because it, or an object it hangs on,
/// is refused, or because planning it failed. Absent where that never was so.
pub(crate) const REFUSED: &str = "convoy.dev/Refused";

/// The most errors that a condition repeats.
const TOLD: usize = 5;

/// The step with what people are told about a refusal: a condition while it lasts, and an event
/// when it begins or changes.
pub(crate) fn told(
    mut step: Step,
    rollout: &Object,
    refusals: &Refusals<'_>,
    now: Timestamp,
) -> Step {
    let refusal = reason(&step, refusals);
    if refusal.is_none() && rollout.condition_status(REFUSED) != Some("True") {
        return step;
    }
    let (reason, message) = refusal.clone().unwrap_or(("Accepted", String::new()));
    let status = condition::truth(refusal.is_some());
    let wanted = Condition::new(REFUSED, status, reason, message.as_str());
    let mut status = step.status.take().unwrap_or_else(|| rollout.status().clone());
    let Some(conditions) = condition::with(list(&status, "conditions"), &wanted, now) else {
        step.status = Some(status).filter(|status| status != rollout.status());
        return step;
    };
    if !status.is_object() {
        status = json!({});
    }
    status["conditions"] = Value::Array(conditions);
    step.status = Some(status);
    if refusal.is_some() {
        step.events.push(warning(rollout.key(), message).lasting());
    }
    step
}

/// What is told about an invalid object that is no rollout, and so has no step to report it.
pub fn event_of(found: &Diagnostic) -> Event {
    let said = said(found);
    let message = format!("{said}. Rollouts that depend on it are held until it is corrected.");
    warning(&found.key, message)
}

fn warning(regarding: &ObjectKey, message: String) -> Event {
    Event::new(regarding, EventType::Warning, "Refused", message)
}

/// Why nothing is done about a rollout, if it is for a refusal.
fn reason(step: &Step, refusals: &Refusals<'_>) -> Option<(&'static str, String)> {
    let own = step.holds.iter().filter(|hold| hold.member.is_none()).map(|hold| &hold.reason);
    let refused = |reason: &HoldReason| match reason {
        HoldReason::Invalid { .. } => {
            let errors: Vec<String> = refusals.errors_of(&step.rollout).map(said).collect();
            let rest = errors.len().saturating_sub(TOLD);
            let mut message = errors[..errors.len() - rest].join("; ");
            if errors.is_empty() {
                message = reason.to_string();
            }
            if rest > 0 {
                let _ = write!(message, "; and {rest} more");
            }
            Some(("Invalid", format!("{message}. Nothing is done until this is corrected.")))
        }
        HoldReason::HangsOnRefused { .. } | HoldReason::PlanFailed { .. } => {
            Some((reason.word(), reason.to_string()))
        }
        _ => None,
    };
    own.into_iter().find_map(refused)
}

fn said(Diagnostic { field, message, .. }: &Diagnostic) -> String {
    let colon = if field.is_empty() { "" } else { ": " };
    format!("{field}{colon}{}", message.trim_end_matches('.'))
}

#[cfg(test)]
mod tests;
