//! Endpoints and EndpointSlices, for clusters without a kube-controller-manager: those of a
//! Service with a selector list the pods that it selects, and those that somebody else writes for
//! a Service without one are mirrored to EndpointSlices.
//!
//! A rollout is a Service, or Endpoints whose Service is gone.

mod decide;
mod names;
mod read;
mod report;
mod watch;
mod write;

use convoy_api::kinds::{ENDPOINTS, SERVICE};
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;

use super::{Dialect, Watch};
use crate::snapshot::Snapshot;
use crate::step::Step;
use crate::world::World;

/// The controller of Endpoints and EndpointSlices.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints;

impl Dialect for Endpoints {
    fn name(&self) -> &'static str {
        names::DIALECT
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        let left = world.of(&ENDPOINTS).filter(|endpoints| watch::is_left(world, endpoints));
        world.of(&SERVICE).chain(left).collect()
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        *object.kind() == SERVICE || watch::is_left(world, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed)
    }

    fn affected_by(
        &self,
        _world: &World,
        before: &Object,
        after: &Object,
        _decided_at: Timestamp,
    ) -> Option<Vec<ObjectKey>> {
        watch::affected_by(before, after)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout)
    }

    fn step(&self, snapshot: &Snapshot<'_>, _now: Timestamp) -> Step {
        let course = decide::course(snapshot);
        let actions = write::actions(snapshot, &course);
        report::step(snapshot.rollout(), &course, actions)
    }
}

#[cfg(test)]
mod tests;
