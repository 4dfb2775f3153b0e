//! Patches of one object: changes are gathered, so that each part of it is written once, and not
//! at all if it reads so already.

use convoy_api::Object;
use convoy_api::object::member::{list, member, text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::condition::{self, Condition};
use crate::finalizer;
use crate::merge_patch::nested;
use crate::step::{Action, Verb, Why};

/// The condition that sums up the others.
const READY: &str = "Ready";

/// Changes to one object that are being gathered.
#[derive(Clone, Debug)]
pub(crate) struct ObjectPatch<'w> {
    object: &'w Object,
    now: Timestamp,
    /// Most objects stay as they are: what does not change takes no map.
    metadata: Option<Map<String, Value>>,
    conditions: Option<Vec<Value>>,
    status: Option<Map<String, Value>>,
}

impl<'w> ObjectPatch<'w> {
    pub(crate) fn new(object: &'w Object, now: Timestamp) -> Self {
        Self { object, now, metadata: None, conditions: None, status: None }
    }

    /// Sets an annotation, or removes it.
    pub(crate) fn annotate(&mut self, key: &str, value: Option<&str>) {
        if self.object.annotation(key) == value {
            return;
        }
        let metadata = self.metadata.get_or_insert_default();
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[key] = json!(value);
    }

    /// Removes a finalizer.
    pub(crate) fn release(&mut self, finalizer: &str) {
        if let Some(rest) = finalizer::without(self.object, &[finalizer]) {
            self.metadata.get_or_insert_default().insert("finalizers".into(), rest);
        }
    }

    /// Sets a condition; of a True one the reason is its type unless another is given.
    pub(crate) fn set(&mut self, kind: &str, status: &'static str, reason: &str, message: &str) {
        let current = self.current(kind);
        let field = |name: &str| current.and_then(|entry| member(entry, name)?.as_str());
        let reads = (field("status"), field("reason"), field("message"));
        if reads == (Some(status), Some(reason), Some(message)) {
            return;
        }
        let wanted = Condition {
            kind: kind.into(),
            status,
            reason: reason.into(),
            message: message.into(),
            observed_generation: Some(self.object.generation())
                .filter(|generation| *generation > 0),
        };
        let now = self.now;
        condition::set(self.conditions_mut(), &wanted, now);
    }

    pub(crate) fn unset(&mut self, kind: &str) {
        if self.current(kind).is_some() {
            condition::remove(self.conditions_mut(), kind);
        }
    }

    /// Sets another field of the status.
    pub(crate) fn status(&mut self, field: &str, value: Value) {
        if member(self.object.status(), field) != Some(&value) {
            self.status.get_or_insert_default().insert(field.to_owned(), value);
        }
    }

    /// The condition as it reads with the changes so far.
    pub(crate) fn current(&self, kind: &str) -> Option<&Value> {
        let of_kind = |entry: &&Value| text(entry, "type") == kind;
        match &self.conditions {
            Some(conditions) => conditions.iter().find(of_kind),
            None => self.object.condition(kind),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.metadata.is_none() && self.conditions.is_none() && self.status.is_none()
    }

    /// The patches, metadata first.
    pub(crate) fn actions(self, verb: Verb, why: &Why) -> Vec<Action> {
        let object = self.object;
        let (metadata, status) = self.parts();
        let mut actions = Vec::new();
        if !metadata.is_empty() {
            actions.push(Action::patch(
                verb,
                object,
                nested(&["metadata"], metadata.into()),
                why.clone(),
            ));
        }
        if !status.is_empty() {
            let patch = nested(&["status"], status.into());
            actions.push(Action::patch_status(verb, object, patch, why.clone()));
        }
        actions
    }

    /// The changed fields of metadata and status.
    pub(crate) fn parts(self) -> (Map<String, Value>, Map<String, Value>) {
        let mut status = self.status.unwrap_or_default();
        if let Some(mut conditions) = self.conditions {
            conditions.sort_by(|one, other| place(one).cmp(&place(other)));
            status.insert("conditions".into(), Value::Array(conditions));
        }
        (self.metadata.unwrap_or_default(), status)
    }

    fn conditions_mut(&mut self) -> &mut Vec<Value> {
        let object = self.object;
        self.conditions.get_or_insert_with(|| list(object.status(), "conditions").to_vec())
    }
}

/// Where a condition is written: by age, and the one that sums up the others last.
fn place(condition: &Value) -> (bool, &str) {
    (text(condition, "type") == READY, text(condition, "lastTransitionTime"))
}
