//! Status conditions: a list keyed by type whose transition time changes only when the
//! status does, so that an unchanged world writes nothing.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A condition as it should read, but for its transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    pub reason: String,
    pub message: String,
    /// Left out of the JSON where it is absent.
    pub observed_generation: Option<i64>,
}

/// Puts `wanted` into the list `conditions`, replacing the entry of its type where it stands.
/// `lastTransitionTime` is kept unless the status word changes.
pub fn set(conditions: &mut Vec<Value>, wanted: &Condition, now: Timestamp) {
    let existing = conditions.iter().position(|entry| entry["type"] == wanted.kind.as_str());
    let since = existing
        .map(|at| &conditions[at])
        .filter(|entry| entry["status"] == wanted.status)
        .and_then(|entry| entry.get("lastTransitionTime").cloned())
        .filter(Value::is_string)
        .unwrap_or_else(|| instant(now));
    let entry = rendered(wanted, since);
    match existing {
        Some(at) => conditions[at] = entry,
        None => conditions.push(entry),
    }
}

/// Takes the entry of a type out of the list.
pub fn remove(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|entry| entry["type"] != kind);
}

/// An instant as Kubernetes writes it: UTC, whole seconds.
pub fn instant(at: Timestamp) -> Value {
    let whole = Timestamp::from_second(at.as_second()).unwrap_or(at);
    Value::String(whole.to_string())
}

fn rendered(wanted: &Condition, since: Value) -> Value {
    let mut entry = Map::new();
    entry.insert("type".into(), json!(wanted.kind));
    entry.insert("status".into(), json!(wanted.status));
    if let Some(generation) = wanted.observed_generation {
        entry.insert("observedGeneration".into(), json!(generation));
    }
    entry.insert("lastTransitionTime".into(), since);
    entry.insert("reason".into(), json!(wanted.reason));
    entry.insert("message".into(), json!(wanted.message));
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: &'static str, message: &str) -> Condition {
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
}
