//! Kinds that are never stored: questions, and bindings of pods to nodes.

use super::kind::{Kind, NewObject, Question};

/// A review, and what it asks.
pub(super) struct Review(pub(super) Question);

impl Kind for Review {
    fn use_of_new(&self) -> NewObject {
        NewObject::Question(self.0)
    }
}

pub(super) struct Binding;

impl Kind for Binding {
    fn use_of_new(&self) -> NewObject {
        NewObject::Binding
    }
}

/// The parts of the control plane, which are all in this process.
pub(super) struct ComponentStatus;

impl Kind for ComponentStatus {
    fn is_made_up(&self) -> bool {
        true
    }
}
