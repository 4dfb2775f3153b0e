//! The metadata fields that every part of Convoy reads. All are lenient: what is absent or
//! of the wrong type reads as absent; saying so is the validator's part.

use jiff::Timestamp;
use serde_json::Value;

use super::Object;
use super::member::{list, member, text};

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerReference<'o> {
    pub api_version: &'o str,
    pub kind: &'o str,
    pub name: &'o str,
    pub uid: &'o str,
    pub controller: bool,
}

impl<'o> OwnerReference<'o> {
    fn read(owner: &'o Value) -> Self {
        Self {
            api_version: text(owner, "apiVersion"),
            kind: text(owner, "kind"),
            name: text(owner, "name"),
            uid: text(owner, "uid"),
            controller: is_controller(owner),
        }
    }
}

impl Object {
    pub fn uid(&self) -> Option<&str> {
        member(self.metadata(), "uid")?.as_str()
    }

    pub fn resource_version(&self) -> Option<&str> {
        member(self.metadata(), "resourceVersion")?.as_str()
    }

    /// 0 where the server has not set it, as in Go.
    pub fn generation(&self) -> i64 {
        member(self.metadata(), "generation").and_then(Value::as_i64).unwrap_or(0)
    }

    pub fn created_at(&self) -> Option<Timestamp> {
        timestamp(member(self.metadata(), "creationTimestamp"))
    }

    pub fn deleted_at(&self) -> Option<Timestamp> {
        timestamp(member(self.metadata(), "deletionTimestamp"))
    }

    /// Whether deletion has begun. True also where the timestamp cannot be read.
    pub fn is_deleting(&self) -> bool {
        member(self.metadata(), "deletionTimestamp").is_some_and(|at| !at.is_null())
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        member(member(self.metadata(), "labels")?, key)?.as_str()
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        member(member(self.metadata(), "annotations")?, key)?.as_str()
    }

    /// `(key, value)` pairs of `metadata.labels`, in the order they were written.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        pairs(member(self.metadata(), "labels"))
    }

    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        pairs(member(self.metadata(), "annotations"))
    }

    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        list(self.metadata(), "finalizers").iter().any(|item| item.as_str() == Some(finalizer))
    }

    pub fn owners(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        list(self.metadata(), "ownerReferences").iter().map(OwnerReference::read)
    }

    /// The owner that manages this object, of which there is at most one.
    pub fn controller(&self) -> Option<OwnerReference<'_>> {
        let mut owners = list(self.metadata(), "ownerReferences").iter();
        owners.find(|owner| is_controller(owner)).map(OwnerReference::read)
    }

    /// The entry of `status.conditions` with this type.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let mut conditions = list(self.status(), "conditions").iter();
        conditions.find(|entry| member(entry, "type").and_then(Value::as_str) == Some(kind))
    }

    /// The status word of a condition: `True`, `False`, `Unknown`.
    pub fn condition_status(&self, kind: &str) -> Option<&str> {
        member(self.condition(kind)?, "status")?.as_str()
    }
}

fn is_controller(owner: &Value) -> bool {
    member(owner, "controller").and_then(Value::as_bool).unwrap_or(false)
}

/// Reads an RFC 3339 instant out of a field.
pub fn timestamp(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

fn pairs(map: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
