//! Server-side apply: whose the fields of objects are. There is one manager that applies, the
//! engine, and one that edits; a real server tells many apart.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{Object, ObjectKey};
use convoy_plan::three_way;
use serde_json::{Value, json};

use super::{Applier, ApplyError};

/// The name by which conflicts call other clients.
const EDITOR: &str = "kubectl-edit";

/// Who set which fields.
#[derive(Clone, Debug, Default)]
pub(super) struct ManagedFields {
    /// Paths of fields that other clients have set.
    edited: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// What the engine applied last.
    applied: BTreeMap<ObjectKey, Value>,
}

impl ManagedFields {
    /// Another client writes `after`: what it changes becomes its own.
    pub(super) fn note_edit(&mut self, before: &Object, after: &Value) {
        let edited = self.edited.entry(before.key().clone()).or_default();
        let mut changed = |path: &str, value: &Value| {
            if before.raw().pointer(path) != Some(value) && !path.starts_with("/status") {
                edited.insert(path.to_owned());
            }
        };
        leaves(after, "", &mut changed);
    }

    pub(super) fn note_applied(&mut self, key: &ObjectKey, object: &Value) {
        self.applied.insert(key.clone(), object.clone());
        if let Some(edited) = self.edited.get_mut(key) {
            leaves(object, "", &mut |path, _| _ = edited.remove(path));
        }
    }

    /// The fields that an apply of `object` would take from others.
    fn conflicts(&self, live: &Object, object: &Value) -> Vec<String> {
        let Some(edited) = self.edited.get(live.key()) else { return Vec::new() };
        let mut found = Vec::new();
        leaves(object, "", &mut |path, value| {
            if edited.contains(path) && live.raw().pointer(path) != Some(value) {
                found.push(path.replace('/', "."));
            }
        });
        found
    }
}

impl Applier {
    pub(super) fn apply_on_server(
        &mut self,
        live: &Object,
        object: &Value,
        force: bool,
    ) -> Result<(), ApplyError> {
        let conflicts = self.managed.conflicts(live, object);
        if let (Some(first), false) = (conflicts.first(), force) {
            let message = format!(
                "Apply failed with {} conflict: conflict with {EDITOR:?} using v1: {first}",
                conflicts.len()
            );
            return Err(ApplyError::Denied(Box::new(live.key().clone()), message));
        }
        let last = self.managed.applied.get(live.key()).unwrap_or(&Value::Null);
        let mut merged = three_way::merged(last, object, live.raw(), true);
        merged["metadata"]["ownerReferences"] = joined_owners(live, object);
        self.managed.note_applied(live.key(), object);
        self.store(live, merged);
        Ok(())
    }
}

/// Owners are a list whose elements have a key: an apply adds its own.
fn joined_owners(live: &Object, object: &Value) -> Value {
    let of = |value: &Value| value["metadata"]["ownerReferences"].as_array().cloned();
    let mut owners = of(live.raw()).unwrap_or_default();
    for owner in of(object).unwrap_or_default() {
        if !owners.iter().any(|known| known["uid"] == owner["uid"]) {
            owners.push(owner);
        }
    }
    json!(owners)
}

/// Calls `visit` with every value that has no fields or elements, and its path.
fn leaves(value: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, below) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                leaves(below, &format!("{path}/{name}"), visit);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, below) in items.iter().enumerate() {
                leaves(below, &format!("{path}/{at}"), visit);
            }
        }
        leaf => visit(path, leaf),
    }
}
