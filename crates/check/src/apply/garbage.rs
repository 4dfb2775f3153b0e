//! Deletion: finalizers delay it, and dependents are deleted with their owner.

use convoy_api::{Object, ObjectKey};
use convoy_plan::step::Propagation;
use serde_json::Value;

use super::{Applier, child};

impl Applier {
    /// Starts the deletion of `object`, and completes it if no finalizer delays it.
    pub(super) fn delete(&mut self, object: &Object, propagation: Propagation) {
        if object.is_deleting() {
            return self.finalize(object.key());
        }
        let mut raw = object.raw().clone();
        let at = convoy_plan::condition::instant(self.now);
        child(&mut raw, "metadata").insert("deletionTimestamp".to_owned(), at);
        self.store(object, raw);
        if propagation == Propagation::Orphan {
            self.release_dependents(object);
        }
        self.finalize(object.key());
    }

    /// Removes an object that is being deleted and has no finalizers.
    pub(super) fn finalize(&mut self, key: &ObjectKey) {
        let Some(object) = self.world.get(key).cloned() else { return };
        let held = object.metadata().get("finalizers").and_then(Value::as_array);
        if !object.is_deleting() || held.is_some_and(|list| !list.is_empty()) {
            return;
        }
        self.world.remove(key);
        for dependent in self.dependents(&object) {
            self.delete(&dependent, Propagation::Background);
        }
    }

    /// The objects whose only owner is `owner`.
    fn dependents(&self, owner: &Object) -> Vec<Object> {
        let Some(uid) = owner.uid() else { return Vec::new() };
        let only_owner = |object: &&Object| {
            let mut owners = object.owners().peekable();
            owners.peek().is_some() && owners.all(|reference| reference.uid == uid)
        };
        self.world.iter().filter(only_owner).cloned().collect()
    }

    fn release_dependents(&mut self, owner: &Object) {
        for dependent in self.dependents(owner) {
            let mut raw = dependent.raw().clone();
            child(&mut raw, "metadata").shift_remove("ownerReferences");
            self.store(&dependent, raw);
        }
    }
}
