//! What was read: the objects, where each came from, and what could not be read.

use std::collections::BTreeMap;

use convoy_api::{Object, ObjectKey};
use convoy_plan::{Severity, World};
use serde_json::Value;

use super::place::{Origin, Place, Problem};

/// The objects of all inputs together.
#[derive(Clone, Debug, Default)]
pub struct Bag {
    pub world: World,
    pub problems: Vec<Problem>,
    origins: BTreeMap<ObjectKey, Origin>,
}

impl Bag {
    /// Whether everything could be read.
    pub fn is_sound(&self) -> bool {
        self.problems.iter().all(|problem| problem.severity != Severity::Error)
    }

    /// Where an object was read.
    pub fn origin(&self, key: &ObjectKey) -> Option<&Origin> {
        self.origins.get(key)
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Takes in one JSON value that should be an object. The first of two objects with the
    /// same identity stays; which one was meant is not ours to guess.
    pub(super) fn object(&mut self, origin: &Origin, value: Value) -> Result<(), Problem> {
        let object = Object::from_value(value).map_err(|error| {
            let message = format!("not a Kubernetes object: {error}");
            Problem::error(Place::from(origin), message)
        })?;
        if let Some(first) = self.origins.get(object.key()) {
            let message = format!("{} is given twice: first at {first}, again here", object.key());
            let problem = Problem::error(Place::from(origin), message);
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
