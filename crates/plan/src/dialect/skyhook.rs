//! Skyhook: node packages rolled through compartments with budgets and batches.

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use super::{Dialect, Watch};
use crate::diagnostic::Diagnostic;
use crate::snapshot::Snapshot;
use crate::step::{Step, Verdict};
use crate::world::World;

/// The `skyhook` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Skyhook;

impl Dialect for Skyhook {
    fn name(&self) -> &'static str {
        "skyhook"
    }

    fn watches(&self) -> &'static [Watch] {
        &[]
    }

    fn validates(&self, _kind: &GroupKind) -> bool {
        false
    }

    fn validate(&self, _world: &World, _object: &Object) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn rollouts<'w>(&self, _world: &'w World) -> Vec<&'w Object> {
        Vec::new()
    }

    fn affected(&self, _world: &World, _changed: &ObjectKey) -> Vec<ObjectKey> {
        Vec::new()
    }

    fn snapshot<'w>(&self, _world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        Snapshot::new(rollout, [])
    }

    fn step(&self, snapshot: &Snapshot<'_>, _now: Timestamp) -> Step {
        Step::new(self.name(), snapshot.rollout(), Verdict::Done)
    }
}
