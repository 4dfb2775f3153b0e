//! The metadata fields that every part of Convoy reads. All are lenient: what is absent or
//! of the wrong type reads as absent; saying so is the validator's part.

use jiff::Timestamp;
use serde_json::Value;

use super::Object;

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerReference<'o> {
    pub api_version: &'o str,
    pub kind: &'o str,
    pub name: &'o str,
    pub uid: &'o str,
    pub controller: bool,
}

impl Object {
    pub fn metadata(&self) -> &Value {
        self.raw().get("metadata").unwrap_or(&Value::Null)
    }

    pub fn uid(&self) -> Option<&str> {
        self.metadata().get("uid")?.as_str()
    }

    pub fn resource_version(&self) -> Option<&str> {
        self.metadata().get("resourceVersion")?.as_str()
    }

    /// 0 where the server has not set it, as in Go.
    pub fn generation(&self) -> i64 {
        self.metadata().get("generation").and_then(Value::as_i64).unwrap_or(0)
    }

    pub fn created_at(&self) -> Option<Timestamp> {
        timestamp(self.metadata().get("creationTimestamp"))
    }

    pub fn deleted_at(&self) -> Option<Timestamp> {
        timestamp(self.metadata().get("deletionTimestamp"))
    }

    /// Whether deletion has begun. True also where the timestamp cannot be read.
    pub fn is_deleting(&self) -> bool {
        self.metadata().get("deletionTimestamp").is_some_and(|at| !at.is_null())
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata().get("labels")?.get(key)?.as_str()
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata().get("annotations")?.get(key)?.as_str()
    }

    /// `(key, value)` pairs of `metadata.labels`, in the order they were written.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        pairs(self.metadata().get("labels"))
    }

    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        pairs(self.metadata().get("annotations"))
    }

    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        let finalizers = self.metadata().get("finalizers").and_then(Value::as_array);
        finalizers.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(finalizer)))
    }

    pub fn owners(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        let owners = self.metadata().get("ownerReferences").and_then(Value::as_array);
        owners.into_iter().flatten().map(|owner| {
            let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
            OwnerReference {
                api_version: text("apiVersion"),
                kind: text("kind"),
                name: text("name"),
                uid: text("uid"),
                controller: owner.get("controller").and_then(Value::as_bool).unwrap_or(false),
            }
        })
    }

    /// The owner that manages this object, of which there is at most one.
    pub fn controller(&self) -> Option<OwnerReference<'_>> {
        self.owners().find(|owner| owner.controller)
    }

    /// The entry of `status.conditions` with this type.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let conditions = self.status().get("conditions")?.as_array()?;
        conditions.iter().find(|entry| entry.get("type").and_then(Value::as_str) == Some(kind))
    }

    /// The status word of a condition: `True`, `False`, `Unknown`.
    pub fn condition_status(&self, kind: &str) -> Option<&str> {
        self.condition(kind)?.get("status")?.as_str()
    }
}

/// Reads an RFC 3339 instant out of a field.
pub fn timestamp(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

fn pairs(map: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
