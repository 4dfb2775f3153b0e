//! Status conditions: a list keyed by type whose transition time changes only when the
//! status does, so that an unchanged world writes nothing.

pub(crate) mod conditioned;
pub(crate) mod dated;

use std::borrow::Cow;

use convoy_api::Object;
use convoy_api::object::member::{member, text};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// A condition as it should read, but for its transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition<'t> {
    pub kind: Cow<'t, str>,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    pub reason: Cow<'t, str>,
    pub message: Cow<'t, str>,
    /// Left out of the JSON where it is absent.
    pub observed_generation: Option<i64>,
}

impl<'t> Condition<'t> {
    pub fn new(
        kind: impl Into<Cow<'t, str>>,
        status: &'static str,
        reason: impl Into<Cow<'t, str>>,
        message: impl Into<Cow<'t, str>>,
    ) -> Self {
        let (kind, reason, message) = (kind.into(), reason.into(), message.into());
        Self { kind, status, reason, message, observed_generation: None }
    }

    /// The same, observed at a generation of its object.
    #[must_use]
    pub fn of_generation(self, generation: i64) -> Self {
        Self { observed_generation: Some(generation), ..self }
    }
}

/// Whether something is so, as a status word.
pub fn truth(holds: bool) -> &'static str {
    if holds { "True" } else { "False" }
}

/// When a condition of an object last changed its status.
pub(crate) fn since(object: &Object, kind: &str) -> Option<Timestamp> {
    object.condition_summaries().find(|it| it.kind == kind)?.since
}

/// Puts `wanted` into the list `conditions`, replacing the entry of its type where it stands.
/// `lastTransitionTime` is kept unless the status word changes.
pub fn set(conditions: &mut Vec<Value>, wanted: &Condition<'_>, now: Timestamp) {
    let existing = position(conditions, &wanted.kind);
    match existing {
        Some(at) if reads(&conditions[at], wanted) => {}
        Some(at) => conditions[at] = updated(Some(&conditions[at]), wanted, now),
        None => conditions.push(updated(None, wanted, now)),
    }
}

/// The list with `wanted` in it; none if it reads so already.
pub fn with(conditions: &[Value], wanted: &Condition<'_>, now: Timestamp) -> Option<Vec<Value>> {
    let existing = position(conditions, &wanted.kind);
    if existing.is_some_and(|at| reads(&conditions[at], wanted)) {
        return None;
    }
    let entry = updated(existing.map(|at| &conditions[at]), wanted, now);
    let at = existing.unwrap_or(conditions.len());
    let (before, after) = (&conditions[..at], conditions.get(at + 1..).unwrap_or_default());
    Some(before.iter().cloned().chain([entry]).chain(after.iter().cloned()).collect())
}

/// Whether the list has `wanted` in it already.
pub fn has(conditions: &[Value], wanted: &Condition<'_>) -> bool {
    position(conditions, &wanted.kind).is_some_and(|at| reads(&conditions[at], wanted))
}

/// Whether an entry is what [`updated`] would make of it.
fn reads(entry: &Value, wanted: &Condition<'_>) -> bool {
    let Value::Object(fields) = entry else { return false };
    let generation = wanted.observed_generation;
    fields.len() == 5 + usize::from(generation.is_some())
        && fields.iter().all(|(name, value)| match name.as_str() {
            "type" => value.as_str() == Some(&wanted.kind),
            "status" => value.as_str() == Some(wanted.status),
            "observedGeneration" => generation.is_some() && value.as_i64() == generation,
            "lastTransitionTime" => value.is_string(),
            "reason" => value.as_str() == Some(&wanted.reason),
            "message" => value.as_str() == Some(&wanted.message),
            _ => false,
        })
}

/// Takes the entry of a type out of the list.
pub fn remove(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|entry| text(entry, "type") != kind);
}

/// An instant as Kubernetes writes it: UTC, whole seconds.
pub fn instant(at: Timestamp) -> Value {
    let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
    Value::String(whole.to_string())
}

fn position(conditions: &[Value], kind: &str) -> Option<usize> {
    conditions.iter().position(|entry| text(entry, "type") == kind)
}

/// `wanted` as an entry that takes the place of `existing`.
fn updated(existing: Option<&Value>, wanted: &Condition<'_>, now: Timestamp) -> Value {
    let since = existing
        .filter(|entry| text(entry, "status") == wanted.status)
        .and_then(|entry| member(entry, "lastTransitionTime"))
        .filter(|since| since.is_string());
    let mut entry = Map::with_capacity(6);
    entry.insert("type".into(), wanted.kind.as_ref().into());
    entry.insert("status".into(), wanted.status.into());
    if let Some(generation) = wanted.observed_generation {
        entry.insert("observedGeneration".into(), generation.into());
    }
    entry.insert("lastTransitionTime".into(), since.cloned().unwrap_or_else(|| instant(now)));
    entry.insert("reason".into(), wanted.reason.as_ref().into());
    entry.insert("message".into(), wanted.message.as_ref().into());
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready<'t>(status: &'static str, message: &'t str) -> Condition<'t> {
        Condition {
            kind: "Ready".into(),
            status,
            reason: "Because".into(),
            message: message.into(),
            observed_generation: None,
        }
    }

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let early: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let late: Timestamp = "2026-01-02T00:00:00.5Z".parse().unwrap();
        let mut conditions = Vec::new();
        set(&mut conditions, &ready("True", "a"), early);
        set(&mut conditions, &ready("True", "b"), late);
        assert_eq!(conditions[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(conditions[0]["message"], "b");
        set(&mut conditions, &ready("False", "b"), late);
        assert_eq!(conditions[0]["lastTransitionTime"], "2026-01-02T00:00:00Z");
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn a_list_that_says_it_already_is_left_alone() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let once = with(&[], &ready("True", "a"), now).expect("it was empty");
        assert_eq!(with(&once, &ready("True", "a"), now), None);
        assert!(has(&once, &ready("True", "a")) && !has(&once, &ready("True", "b")));
        let twice = with(&once, &ready("True", "b"), now).expect("another message");
        assert_eq!((twice.len(), &twice[0]["message"]), (1, &"b".into()));
    }
}
