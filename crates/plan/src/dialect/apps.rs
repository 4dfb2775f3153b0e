//! The Kubernetes Deployment: replicas rolled from one ReplicaSet to the next; and the
//! ReplicaSet, which keeps as many pods as it is asked for.
//!
//! In a plan a ReplicaSet that no Deployment looks after is a rollout of its own. Control loops
//! run the dialect in two parts: Deployments everywhere, ReplicaSets where there is no
//! kube-controller-manager. The two share nothing but the rules of ownership.

mod decide;
mod names;
mod read;
mod report;
mod status;
mod validate;
mod watch;
mod write;

use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET};
use convoy_api::kinds::REPLICATION_CONTROLLER;
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use self::names::{APPS, REPLICA_SETS};
use self::read::deployment::Deployment;
use super::{Dialect, NamedKind, Watch};
use crate::diagnostic::Diagnostic;
use crate::hold::Hold;
use crate::intervention::{Intervention, Refused, Revision};
use crate::ownership;
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::{Action, Complaint, Denial, Event, EventType, Step};
use crate::world::World;

/// The `apps` dialect of plans.
#[derive(Clone, Copy, Debug)]
pub struct Apps;

/// The controller of Deployments.
#[derive(Clone, Copy, Debug)]
pub struct Deployments;

/// The controller of ReplicaSets.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaSets;

/// The controller of ReplicationControllers: ReplicaSets of their own, with another selector.
#[derive(Clone, Copy, Debug)]
pub struct ReplicationControllers;

impl Dialect for Apps {
    fn name(&self) -> &'static str {
        APPS
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        *kind == DEPLOYMENT || *kind == REPLICA_SET
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::findings(object)
    }

    fn rollout_kinds(&self) -> &'static [NamedKind] {
        watch::ROLLOUT_KINDS
    }

    fn stays_in_namespace(&self) -> bool {
        true
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        watch::rollouts_among(world, world.of(&DEPLOYMENT).collect(), world.of(&REPLICA_SET))
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout)
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        watch::concerns(rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        if *snapshot.rollout().kind() == REPLICA_SET {
            step_of_replica_set(APPS, snapshot, now)
        } else {
            step_of_deployment(snapshot, now)
        }
    }

    fn has_member(&self, world: &World, rollout: &Object, name: &str) -> bool {
        watch::has_member(world, rollout, name)
    }

    fn member_holds(&self, world: &World, rollout: &Object) -> Vec<Hold> {
        report::pods::not_ready(world, rollout)
    }

    fn intervene(
        &self,
        world: &World,
        rollout: &Object,
        intervention: &Intervention,
        now: Timestamp,
    ) -> Result<Vec<Action>, Refused> {
        write::intervention::intervene(world, rollout, intervention, now)
    }

    fn revisions(&self, world: &World, rollout: &Object) -> Vec<Revision> {
        write::intervention::revisions(world, rollout)
    }
}

impl Dialect for Deployments {
    fn name(&self) -> &'static str {
        APPS
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        Apps.validates(kind)
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::findings(object)
    }

    fn validates_beside(&self, _kind: &GroupKind, _other: &GroupKind) -> bool {
        false
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&DEPLOYMENT).collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.kind() == DEPLOYMENT
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected_deployments(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot_of_deployment(world, rollout)
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        watch::concerns(rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        step_of_deployment(snapshot, now)
    }

    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        status::denied::deployment(snapshot, denial, now)
    }
}

impl Dialect for ReplicaSets {
    fn name(&self) -> &'static str {
        REPLICA_SETS
    }

    fn watches(&self) -> &'static [Watch] {
        // Which pods go first depends on where siblings have theirs, so the kinds are the same.
        watch::WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        *kind == REPLICA_SET
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::findings(object)
    }

    fn validates_beside(&self, _kind: &GroupKind, _other: &GroupKind) -> bool {
        false
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&REPLICA_SET).collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.kind() == REPLICA_SET
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected_sets(world, &REPLICA_SET, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot_of_replica_set(world, rollout)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        step_of_replica_set(REPLICA_SETS, snapshot, now)
    }

    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        status::denied::replica_set(snapshot, denial, now)
    }
}

impl Dialect for ReplicationControllers {
    fn name(&self) -> &'static str {
        "replicationcontrollers"
    }

    fn watches(&self) -> &'static [Watch] {
        watch::OF_REPLICATION_CONTROLLERS
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&REPLICATION_CONTROLLER).collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.kind() == REPLICATION_CONTROLLER
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected_sets(world, &REPLICATION_CONTROLLER, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        Snapshot::new(rollout, ownership::in_reach(world, &POD, rollout))
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        step_of_replica_set(self.name(), snapshot, now)
    }

    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        status::denied::replica_set(snapshot, denial, now)
    }
}

fn step_of_deployment(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    match Deployment::read(snapshot.rollout()) {
        Err(fields) => Step::invalid(APPS, snapshot.rollout(), fields),
        Ok(deployment) if deployment.selector.is_empty() => selecting_all(&deployment),
        Ok(deployment) => report::step(&decide::decide(deployment, snapshot, now)),
    }
}

fn step_of_replica_set(dialect: &'static str, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    match decide::replica_set::decide(snapshot, now) {
        Err(field) => Step::invalid(dialect, snapshot.rollout(), vec![field]),
        Ok(decision) => {
            let step = report::replica_set::step(dialect, &decision, snapshot);
            step.resting_if_many(snapshot.iter().count())
        }
    }
}

/// A selector that selects everything would take over the whole namespace: nothing moves.
fn selecting_all(deployment: &Deployment<'_>) -> Step {
    let object = deployment.object;
    let mut step = Step::invalid(APPS, object, vec!["spec.selector".to_owned()]);
    step.status = status::observed(deployment);
    let message = "This deployment is selecting all pods. A non-empty selector is required.";
    let event = Event::new(object.key(), EventType::Warning, "SelectingAll", message);
    step.events.push(event.lasting());
    step
}

#[cfg(test)]
mod tests;
