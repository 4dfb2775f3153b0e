//! Parts of a status that have conditions of their own, such as the stages of a run.

use convoy_api::object::member::{list, text};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Condition, set};

/// The generation and instant that conditions are written for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) generation: i64,
    pub(crate) now: Timestamp,
}

/// A part of a status with conditions of its own: read leniently, written back with every field
/// it had.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conditioned {
    fields: Map<String, Value>,
    conditions: Vec<Value>,
}

impl Conditioned {
    /// A new object with one text field.
    pub(crate) fn named(field: &str, name: &str) -> Self {
        let mut node = Self::default();
        node.put(field, json!(name));
        node
    }

    /// Conditions are taken for the current generation: changing the state of a run makes a
    /// new one without making what it did untrue.
    pub(crate) fn read(value: &Value, generation: i64) -> Self {
        let mut fields = value.as_object().cloned().unwrap_or_default();
        let mut conditions = list(value, "conditions").to_vec();
        for entry in conditions.iter_mut().filter_map(Value::as_object_mut) {
            entry.insert("observedGeneration".into(), json!(generation));
        }
        if conditions.is_empty() {
            fields.shift_remove("conditions");
        }
        Self { fields, conditions }
    }

    pub(crate) fn write(&self) -> Map<String, Value> {
        let mut fields = self.fields.clone();
        if !self.conditions.is_empty() {
            fields.insert("conditions".into(), json!(self.conditions));
        }
        fields
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    /// Sets a field; null takes it away.
    pub(crate) fn put(&mut self, name: &str, value: Value) {
        if value.is_null() {
            self.fields.shift_remove(name);
        } else {
            self.fields.insert(name.to_owned(), value);
        }
    }

    /// Sets a field that is not set yet.
    pub(crate) fn put_once(&mut self, name: &str, value: Value) {
        if self.get(name).is_null() {
            self.put(name, value);
        }
    }

    pub(crate) fn fields(&self) -> Value {
        Value::Object(self.fields.clone())
    }

    fn condition(&self, kind: &str) -> Option<&Value> {
        self.conditions.iter().find(|entry| text(entry, "type") == kind)
    }

    pub(crate) fn status(&self, kind: &str) -> Option<&str> {
        Some(text(self.condition(kind)?, "status"))
    }

    pub(crate) fn is_true(&self, kind: &str) -> bool {
        self.status(kind) == Some("True")
    }

    pub(crate) fn has(&self, kind: &str) -> bool {
        self.condition(kind).is_some()
    }

    pub(crate) fn message(&self, kind: &str) -> &str {
        self.condition(kind).map_or("", |entry| text(entry, "message"))
    }

    /// When a condition last changed its status.
    pub(crate) fn since(&self, kind: &str) -> Option<Timestamp> {
        timestamp(self.condition(kind)?.get("lastTransitionTime"))
    }

    pub(crate) fn set(
        &mut self,
        stamp: Stamp,
        kind: &str,
        status: &'static str,
        why: (&str, &str),
    ) {
        let wanted = Condition::new(kind, status, why.0, why.1).of_generation(stamp.generation);
        set(&mut self.conditions, &wanted, stamp.now);
    }
}
