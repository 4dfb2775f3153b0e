//! Validation errors per object, kept so that a decision does not validate every object again.

use std::collections::BTreeMap;

use convoy_api::{GroupKind, ObjectKey};
use convoy_plan::{Diagnostic, Dialect, Severity, World};

/// The errors that one dialect finds in the objects of a world.
#[derive(Debug, Default)]
pub(crate) struct ValidationErrors {
    by_object: BTreeMap<ObjectKey, Vec<Diagnostic>>,
    /// The same in one list, as `convoy_plan::decide` takes it.
    list: Vec<Diagnostic>,
}

impl ValidationErrors {
    pub(crate) fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// The first error of an object.
    pub(crate) fn first(&self, key: &ObjectKey) -> Option<&Diagnostic> {
        self.by_object.get(key)?.first()
    }

    /// Whether an object has errors.
    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.by_object.contains_key(key)
    }

    /// Validates the objects that the change of `key`, whose kind is validated, may have made
    /// valid or invalid; returns those whose errors changed.
    pub(crate) fn revalidate(
        &mut self,
        dialect: &dyn Dialect,
        world: &World,
        key: &ObjectKey,
    ) -> Vec<ObjectKey> {
        let mut changed = Vec::new();
        let is_beside =
            |kind: &GroupKind| dialect.validates(kind) && dialect.validates_beside(kind, &key.kind);
        let validated = world.by_kind().filter(|(kind, _)| is_beside(kind));
        let mut keys: Vec<ObjectKey> =
            validated.flat_map(|(_, objects)| objects.map(|object| object.key().clone())).collect();
        keys.push(key.clone());
        changed.extend(keys.into_iter().filter(|key| self.validate(dialect, world, key)));
        if !changed.is_empty() {
            self.list = self.by_object.values().flatten().cloned().collect();
            self.list.sort();
        }
        changed
    }

    /// Whether the errors of `key` changed.
    fn validate(&mut self, dialect: &dyn Dialect, world: &World, key: &ObjectKey) -> bool {
        let found =
            world.get(key).map(|object| convoy_plan::validate_object(dialect, world, object));
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
