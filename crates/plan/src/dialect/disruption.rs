//! PodDisruptionBudgets, for clusters without a kube-controller-manager: how many of the pods that
//! a budget protects are healthy, how many have to be, and so how many may be evicted.
//!
//! A rollout is a PodDisruptionBudget, and its members are the pods it selects. Nothing of it
//! moves: the decision is its status, which the server's eviction counts down and this dialect
//! brings up to date.

mod decide;
mod read;
mod report;
mod status;
mod watch;

use convoy_api::kinds::POD_DISRUPTION_BUDGET;
use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;

use super::{Dialect, Need, Watch};
use crate::snapshot::Snapshot;
use crate::step::Step;
use crate::world::World;

/// The controller of PodDisruptionBudgets.
#[derive(Clone, Copy, Debug)]
pub struct PodDisruptionBudgets;

impl Dialect for PodDisruptionBudgets {
    fn name(&self) -> &'static str {
        "poddisruptionbudgets"
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn needs(&self, world: &World, rollout: &Object) -> Vec<Need> {
        watch::needs(world, rollout)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&POD_DISRUPTION_BUDGET).collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.kind() == POD_DISRUPTION_BUDGET
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

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let decision = read::Budget::read(snapshot)
            .and_then(|budget| decide::decide(snapshot, &budget, now).map(|count| (budget, count)));
        report::step(self.name(), snapshot.rollout(), decision, now)
    }
}

#[cfg(test)]
mod tests;
