//! Endpoints and EndpointSlices, for clusters without a kube-controller-manager: those of a
//! Service with a selector list the pods that it selects, and those that somebody else writes for
//! a Service without one are mirrored to EndpointSlices.
//!
//! A rollout is a Service, or Endpoints whose Service is gone.

mod mirror;
mod names;
mod object;
mod pods;
mod slices;
mod watch;

use convoy_api::kinds::{ENDPOINTS, SERVICE};
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::json;

use super::{Dialect, Watch};
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Step, Verb, Verdict, Why};
use crate::world::World;

/// The controller of Endpoints and EndpointSlices.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints;

impl Dialect for Endpoints {
    fn name(&self) -> &'static str {
        "endpoints"
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
        let rollout = snapshot.rollout();
        let step = Step::new(self.name(), rollout, Verdict::Done);
        if *rollout.kind() == ENDPOINTS {
            let why = Why::new("ServiceGone", "their Service is gone");
            let delete = Action::delete(Verb::Delete, rollout, Propagation::Background, why);
            return step.judged(vec![delete]);
        }
        if rollout.is_deleting() || rollout.spec_text("type") == "ExternalName" {
            return step;
        }
        if watch::selector(rollout).is_none() {
            return step.judged(mirror::writes(snapshot));
        }
        let backends = pods::Backend::all(snapshot);
        let mut step = step;
        step.decision = json!({"pods": backends.len(),
            "ready": backends.iter().filter(|backend| backend.is_ready()).count()});
        let mut actions = object::writes(snapshot, &backends);
        actions.extend(slices::of_pods(snapshot, &backends));
        step.judged(actions)
    }
}

#[cfg(test)]
mod tests;
