//! KubeFleet: placements rolled over member clusters.
//!
//! A placement's step joins the stages of the pipeline, which run independently on the objects
//! as given: selecting resources, scheduling clusters, rolling out bindings, rolling up status.

pub mod binding;
pub mod eviction;
pub mod names;
pub mod overrides;
pub mod part;
pub mod placement;
pub mod resource_group;
pub mod rollout;

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use super::{Dialect, Watch};
use crate::diagnostic::Diagnostic;
use crate::snapshot::Snapshot;
use crate::step::{Step, Verdict};
use crate::world::World;

/// The `fleet` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Fleet;

/// The word that plans and `--dialects` use.
pub const DIALECT: &str = "fleet";

impl Dialect for Fleet {
    fn name(&self) -> &'static str {
        DIALECT
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
