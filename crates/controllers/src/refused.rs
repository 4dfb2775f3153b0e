//! What validation found wrong, kept per object so that a pass does not validate the world.

use std::collections::BTreeMap;

use convoy_api::ObjectKey;
use convoy_plan::{Diagnostic, Dialect, Severity, World};

/// The errors that one dialect finds in the objects of a world.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    by_object: BTreeMap<ObjectKey, Vec<Diagnostic>>,
    /// The same in one list, as decisions take it.
    list: Vec<Diagnostic>,
}

impl Refused {
    pub(crate) fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Whether anything is wrong with an object.
    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.by_object.contains_key(key)
    }

    /// Judges anew what the change of `key`, whose kind is validated, may have made right or
    /// wrong; gives back the other objects whose judgement changed.
    pub(crate) fn review(
        &mut self,
        dialect: &dyn Dialect,
        world: &World,
        key: &ObjectKey,
    ) -> Vec<ObjectKey> {
        let mut changed = Vec::new();
        if dialect.validates_alone() {
            if self.judge(dialect, world, key) {
                changed.push(key.clone());
            }
        } else {
            let validated = world.by_kind().filter(|(kind, _)| dialect.validates(kind));
            let mut keys: Vec<ObjectKey> = validated
                .flat_map(|(_, objects)| objects.map(|object| object.key().clone()))
                .collect();
            keys.push(key.clone());
            changed.extend(keys.into_iter().filter(|key| self.judge(dialect, world, key)));
        }
        if !changed.is_empty() {
            self.list = self.by_object.values().flatten().cloned().collect();
            self.list.sort();
        }
        changed
    }

    /// Whether the judgement about `key` is another than before.
    fn judge(&mut self, dialect: &dyn Dialect, world: &World, key: &ObjectKey) -> bool {
        let found = world.get(key).map(|object| dialect.validate(world, object));
        let mut errors = found.unwrap_or_default();
        errors.retain(|found| found.severity == Severity::Error);
        if self.by_object.get(key).map_or(&[][..], Vec::as_slice) == errors {
            return false;
        }
        if errors.is_empty() {
            self.by_object.remove(key);
        } else {
            self.by_object.insert(key.clone(), errors);
        }
        true
    }
}
