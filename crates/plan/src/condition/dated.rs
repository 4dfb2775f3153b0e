//! Conditions that also say when they were last updated, as those of Deployments do: the list
//! that is read, changed by a decision and written back. Entries of types that nobody here knows
//! stay as they are.

use convoy_api::Object;
use convoy_api::object::member::{list, member, text};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{instant, remove};

/// The conditions, as this step leaves them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conditions(Vec<Value>);

/// One condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'c>(&'c Value);

impl Conditions {
    pub(crate) fn of(object: &Object) -> Self {
        Self::in_status(object.status())
    }

    pub(crate) fn in_status(status: &Value) -> Self {
        Self(list(status, "conditions").to_vec())
    }

    pub(crate) fn as_slice(&self) -> &[Value] {
        &self.0
    }

    pub(crate) fn find(&self, kind: &str) -> Option<Entry<'_>> {
        self.0.iter().find(|entry| text(entry, "type") == kind).map(Entry)
    }

    /// The reason of a condition; empty where there is none.
    pub(crate) fn reason(&self, kind: &str) -> &str {
        self.find(kind).map_or("", Entry::reason)
    }

    pub(crate) fn remove(&mut self, kind: &str) {
        remove(&mut self.0, kind);
    }

    /// Sets a condition the way Deployments do: an entry with the same status and reason stays
    /// untouched, anything else goes to the end of the list. `lastTransitionTime` stays while the
    /// status does.
    pub(crate) fn set(
        &mut self,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) {
        let before = self.find(kind);
        if before.is_some_and(|entry| entry.status() == status && entry.reason() == reason) {
            return;
        }
        let since = before.filter(|entry| entry.status() == status).and_then(Entry::since);
        self.push(kind, status, reason, message, (now, since));
    }

    /// Sets a condition even if it reads so already, so that `lastUpdateTime` is the present.
    pub(crate) fn renew(
        &mut self,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) {
        let before = self.find(kind).filter(|entry| entry.status() == status);
        let since = before.and_then(|entry| member(entry.0, "lastTransitionTime").cloned());
        self.push(kind, status, reason, message, (now, since));
    }

    /// Takes a condition over from another object, with its times.
    pub(crate) fn copy(&mut self, kind: &str, from: Entry<'_>, now: Timestamp) {
        let same =
            |entry: Entry<'_>| entry.status() == from.status() && entry.reason() == from.reason();
        if self.find(kind).is_some_and(same) {
            return;
        }
        self.set(kind, from.status(), from.reason(), from.message(), now);
        if let (Some(since), Some(entry)) =
            (member(from.0, "lastTransitionTime"), self.0.last_mut())
        {
            entry["lastUpdateTime"] = since.clone();
            entry["lastTransitionTime"] = since.clone();
        }
    }

    fn push(
        &mut self,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
        (now, since): (Timestamp, Option<Value>),
    ) {
        let entry = json!({
            "type": kind,
            "status": status,
            "lastUpdateTime": instant(now),
            "lastTransitionTime": since.unwrap_or_else(|| instant(now)),
            "reason": reason,
            "message": message,
        });
        remove(&mut self.0, kind);
        self.0.push(entry);
    }
}

/// `Type: "Status/Reason"`, as the decision of a plan lists them.
pub(crate) fn summary(conditions: &[Value]) -> Value {
    let line = |entry: &Value| {
        let told = Entry(entry);
        (text(entry, "type").to_owned(), json!(format!("{}/{}", told.status(), told.reason())))
    };
    Value::Object(conditions.iter().map(line).collect())
}

impl<'c> Entry<'c> {
    /// The condition of an object.
    pub(crate) fn of(object: &'c Object, kind: &str) -> Option<Self> {
        object.condition(kind).map(Entry)
    }

    /// The condition of a status, or of a part of one that has conditions of its own.
    pub(crate) fn within(status: &'c Value, kind: &str) -> Option<Self> {
        list(status, "conditions").iter().find(|entry| text(entry, "type") == kind).map(Entry)
    }

    pub(crate) fn status(self) -> &'c str {
        text(self.0, "status")
    }

    pub(crate) fn reason(self) -> &'c str {
        text(self.0, "reason")
    }

    pub(crate) fn message(self) -> &'c str {
        text(self.0, "message")
    }

    pub(crate) fn is_true(self) -> bool {
        self.status() == "True"
    }

    pub(crate) fn updated_at(self) -> Option<Timestamp> {
        timestamp(member(self.0, "lastUpdateTime"))
    }

    pub(crate) fn changed_at(self) -> Option<Timestamp> {
        timestamp(member(self.0, "lastTransitionTime"))
    }

    /// The generation that it was observed at; 0 where it does not say.
    pub(crate) fn observed_generation(self) -> i64 {
        member(self.0, "observedGeneration").and_then(Value::as_i64).unwrap_or(0)
    }

    fn since(self) -> Option<Value> {
        member(self.0, "lastTransitionTime").filter(|at| at.is_string()).cloned()
    }
}
