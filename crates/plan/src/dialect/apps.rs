//! The Kubernetes Deployment: replicas rolled from one ReplicaSet to the next.
//!
//! A Deployment is decided in one [`pass`]; a ReplicaSet that no Deployment looks after is a
//! rollout of its own, decided in [`replica_set`], which shares nothing with the former but
//! the rules of ownership.

mod decide;
mod read;
mod report;
mod status;
mod validate;
mod watch;
mod write;

use std::collections::BTreeSet;

use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET};
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;
use serde_json::{Value, json};

use self::decide::{Pass, replica_set};
use self::read::deployment::Deployment;
pub(super) use self::status::says_the_same;
pub use self::watch::{Deployments, ReplicaSets};
pub(super) use self::watch::{keepers, kept};
use super::{Dialect, Keep, Watch};
use crate::diagnostic::Diagnostic;
use crate::hold::{Hold, HoldReason};
use crate::selector::Selector;
use crate::snapshot::Snapshot;
use crate::step::{Event, EventType, Step, Verdict};
use crate::world::World;

/// The `apps` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Apps;

const WATCHES: &[Watch] = &[
    Watch { kind: DEPLOYMENT, keep: Keep::Whole },
    Watch { kind: REPLICA_SET, keep: Keep::Whole },
    Watch {
        kind: POD,
        keep: Keep::Fields(&[
            "spec.nodeName",
            "spec.initContainers",
            "status.phase",
            "status.conditions",
            "status.containerStatuses",
            "status.initContainerStatuses",
        ]),
    },
];

impl Dialect for Apps {
    fn name(&self) -> &'static str {
        "apps"
    }

    fn watches(&self) -> &'static [Watch] {
        WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        *kind == DEPLOYMENT || *kind == REPLICA_SET
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::findings(object)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        rollouts_among(world, world.of(&DEPLOYMENT).collect(), world.of(&REPLICA_SET))
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        let mut keys = BTreeSet::new();
        if changed.kind == DEPLOYMENT {
            keys.insert(changed.clone());
        }
        let namespace = changed.namespace.as_str();
        let concerned = |object: &&Object| match world.get(changed) {
            // Gone, and with it the owner it named: everyone who may have known it looks again.
            None => true,
            Some(changed) => concerns(object, changed) || by_way_of(world, object, changed),
        };
        if [DEPLOYMENT, REPLICA_SET, POD].contains(&changed.kind) {
            let deployments = world.in_namespace(&DEPLOYMENT, namespace).collect();
            let sets = world.in_namespace(&REPLICA_SET, namespace);
            let rollouts = rollouts_among(world, deployments, sets).into_iter();
            keys.extend(rollouts.filter(concerned).map(|object| object.key().clone()));
        }
        keys.into_iter().collect()
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        let namespace = rollout.namespace().as_str();
        let sets = world.in_namespace(&REPLICA_SET, namespace);
        let pods = needs_pods(rollout).then(|| world.in_namespace(&POD, namespace));
        Snapshot::new(rollout, sets.chain(pods.into_iter().flatten()))
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        concerns(rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if *rollout.kind() == REPLICA_SET {
            return replica_set::step(snapshot, now);
        }
        match Deployment::read(rollout) {
            Err(fields) => invalid(rollout, fields),
            Ok(deployment) if deployment.selector.is_empty() => selecting_all(&deployment),
            Ok(deployment) => {
                let mut pass = Pass::new(deployment, snapshot, now);
                let ending = pass.decide();
                report::step(pass, ending)
            }
        }
    }
}

/// The Deployments, and the sets that none of them looks after.
fn rollouts_among<'w>(
    world: &World,
    deployments: Vec<&'w Object>,
    sets: impl Iterator<Item = &'w Object>,
) -> Vec<&'w Object> {
    let uids: BTreeSet<&str> = deployments.iter().filter_map(|object| object.uid()).collect();
    let controlled = |set: &Object| set.controller().is_some_and(|owner| uids.contains(owner.uid));
    let alone = sets.filter(|set| !controlled(set) && !is_selected(world, set));
    deployments.iter().copied().chain(alone).collect()
}

/// Whether a Deployment of the world selects this ReplicaSet, and so accounts for it.
fn is_selected(world: &World, set: &Object) -> bool {
    let mut deployments = world.in_namespace(&DEPLOYMENT, set.namespace());
    deployments.any(|deployment| selects(deployment, set))
}

fn selects(owner: &Object, object: &Object) -> bool {
    let selector = Selector::from_value(owner.spec().get("selector").unwrap_or(&Value::Null));
    selector.is_ok_and(|selector| !selector.is_empty() && selector.matches(object))
}

/// Whether a rollout looks at `changed` itself: it is it, owns it, or could adopt it.
fn concerns(rollout: &Object, changed: &Object) -> bool {
    rollout.key() == changed.key()
        || match changed.controller() {
            Some(owner) => Some(owner.uid) == rollout.uid(),
            None => selects(rollout, changed),
        }
}

/// A pod concerns the Deployment of its ReplicaSet, and a ReplicaSet those beside it: where
/// siblings have pods decides which of its own go first.
fn by_way_of(world: &World, rollout: &Object, changed: &Object) -> bool {
    let Some(owner) = changed.controller() else { return false };
    if *changed.kind() != POD {
        let beside = rollout.controller().is_some_and(|other| other.uid == owner.uid);
        return *rollout.kind() == REPLICA_SET && beside;
    }
    let set = world.find(&REPLICA_SET, changed.namespace(), owner.name);
    needs_pods(rollout)
        && set.is_some_and(|set| set.uid() == Some(owner.uid) && concerns(rollout, set))
}

/// Deployments look at pods to see old ones end and new ones settle, ReplicaSets always.
fn needs_pods(rollout: &Object) -> bool {
    let spec = rollout.spec();
    let recreate = spec.pointer("/strategy/type").and_then(Value::as_str) == Some("Recreate");
    let settles = spec.get("minReadySeconds").and_then(Value::as_i64).is_some_and(|secs| secs > 0);
    recreate || settles || *rollout.kind() == REPLICA_SET
}

fn invalid(rollout: &Object, fields: Vec<String>) -> Step {
    let mut step = Step::new("apps", rollout, Verdict::Invalid);
    step.holds.push(Hold::of_rollout(HoldReason::Invalid { fields }));
    step
}

/// A selector that selects everything would take over the whole namespace: nothing moves.
fn selecting_all(deployment: &Deployment<'_>) -> Step {
    let object = deployment.object;
    let mut step = invalid(object, vec!["spec.selector".to_owned()]);
    if deployment.stored("observedGeneration") < object.generation() {
        let mut status = object.status().clone();
        if !status.is_object() {
            status = json!({});
        }
        status["observedGeneration"] = json!(object.generation());
        step.status = Some(status);
    }
    step.events.push(Event {
        regarding: object.key().clone(),
        kind: EventType::Warning,
        reason: "SelectingAll".to_owned(),
        message: "This deployment is selecting all pods. A non-empty selector is required."
            .to_owned(),
        reports: None,
    });
    step
}

#[cfg(test)]
mod tests;
