//! Open Cluster Management: placements cut into decision groups, works rolled through them.
//!
//! A Placement and a `ManifestWorkReplicaSet` are each a rollout: the first decides which
//! clusters and in which groups, the second hands its template through those groups.

mod decide;
mod names;
mod read;
mod report;
mod status;
mod validate;
mod watch;
mod write;

use convoy_api::ocm::names::{MANIFEST_WORK_REPLICA_SET, PLACEMENT};
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use super::{Dialect, Watch};
use crate::diagnostic::Diagnostic;
use crate::snapshot::Snapshot;
use crate::step::Step;
use crate::world::World;

/// The `ocm` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Ocm;

impl Dialect for Ocm {
    fn name(&self) -> &'static str {
        "ocm"
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        validate::KINDS.contains(kind)
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::validate(object)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&PLACEMENT).chain(world.of(&MANIFEST_WORK_REPLICA_SET)).collect()
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout)
    }

    fn hangs_on(&self, world: &World, rollout: &Object, refused: &Object) -> bool {
        watch::hangs_on(world, rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if *rollout.kind() == PLACEMENT {
            let decision = decide::placement::decide(snapshot, now);
            let actions = write::decision::actions(snapshot, &decision);
            let status = status::placement::status(rollout, &decision, now);
            report::placement::step(rollout, &decision, actions, status, now)
        } else {
            let decision = decide::replica_set::decide(snapshot, now);
            let actions = write::work::actions(rollout, &decision, now);
            let status = status::replica_set::status(rollout, &decision, now);
            report::replica_set::step(rollout, &decision, actions, status, now)
        }
    }
}

#[cfg(test)]
mod tests;
