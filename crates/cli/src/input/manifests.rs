//! The objects that were read, their origins, and the problems found on the way.

use std::collections::BTreeMap;

use convoy_api::{Object, ObjectKey};
use convoy_plan::{Severity, World};
use serde_json::Value;

use super::location::{Origin, Problem, SourceLocation};

/// The objects of all inputs.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    pub world: World,
    pub problems: Vec<Problem>,
    origins: BTreeMap<ObjectKey, Origin>,
}

impl Manifests {
    /// Objects that come from no file.
    pub fn of(world: World) -> Self {
        Self { world, ..Self::default() }
    }

    /// Whether everything could be read.
    pub fn is_sound(&self) -> bool {
        self.problems.iter().all(|problem| problem.severity != Severity::Error)
    }

    /// The file and line of an object.
    pub fn origin(&self, key: &ObjectKey) -> Option<&Origin> {
        self.origins.get(key)
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Adds one JSON value, which must be a Kubernetes object. Of two objects with the same key
    /// the first stays, and the second is a problem.
    pub(super) fn object(&mut self, origin: &Origin, value: Value) -> Result<(), Problem> {
        let object = Object::from_value(value).map_err(|error| {
            let message = format!("not a Kubernetes object: {error}");
            Problem::error(SourceLocation::from(origin), message)
        })?;
        if let Some(first) = self.origins.get(object.key()) {
            let message = format!("duplicate object {}, first defined at {first}", object.key());
            let problem = Problem::error(SourceLocation::from(origin), message);
            return Err(problem.about(full_name(&object)));
        }
        self.origins.insert(object.key().clone(), origin.clone());
        self.world.insert(object);
        Ok(())
    }
}

/// `apiVersion/Kind/namespace/name`, as diagnostics name objects.
fn full_name(object: &Object) -> String {
    let key = object.key();
    format!("{}/{}/{}/{}", object.api_version(), key.kind.kind, key.namespace, key.name)
}
