//! Which objects the dialect watches, which rollouts a change concerns, and what a decision
//! looks at.
//!
//! A plan asks about a whole world ([`Apps`](super::Apps)), where a ReplicaSet that a Deployment
//! looks after is no rollout. Control loops run two parts, in which every ReplicaSet is a rollout
//! of its own; they are asked on every change of every pod, so they follow references instead of
//! looking through the namespace.

use std::collections::BTreeSet;

use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET};
use convoy_api::kinds::REPLICATION_CONTROLLER;
use convoy_api::object::OwnerReference;
use convoy_api::{GroupKind, Object, ObjectKey};

use super::read::needs_pods;
use crate::dialect::{Keep, NamedKind, Watch};
use crate::ownership::{controller, controllers_of, in_reach, is_controlled_by, selects};
use crate::snapshot::Snapshot;
use crate::world::World;

/// What people call rollouts.
pub(super) const ROLLOUT_KINDS: &[NamedKind] = &[
    NamedKind { kind: DEPLOYMENT, short: &["deploy"] },
    NamedKind { kind: REPLICA_SET, short: &["rs"] },
];

pub(super) const WATCHES: &[Watch] = &[
    Watch { kind: DEPLOYMENT, keep: Keep::Whole },
    Watch { kind: REPLICA_SET, keep: Keep::Whole },
    PODS,
];

pub(super) const OF_REPLICATION_CONTROLLERS: &[Watch] =
    &[Watch { kind: REPLICATION_CONTROLLER, keep: Keep::Whole }, PODS];

const PODS: Watch = Watch {
    kind: POD,
    keep: Keep::Fields(&[
        "spec.nodeName",
        "spec.initContainers",
        "status.phase",
        "status.conditions",
        "status.containerStatuses",
        "status.initContainerStatuses",
    ]),
};

/// The Deployments, and the sets that none of them looks after.
pub(super) fn rollouts_among<'w>(
    world: &World,
    deployments: Vec<&'w Object>,
    sets: impl Iterator<Item = &'w Object>,
) -> Vec<&'w Object> {
    let uids: BTreeSet<&str> = deployments.iter().filter_map(|object| object.uid()).collect();
    // In files Deployments may have no uid: then it is the name that counts.
    let is_known = |set: &Object, owner: &OwnerReference<'_>| {
        let named = world.find(&DEPLOYMENT, set.namespace(), owner.name);
        let is_named = || named.is_some_and(|deployment| deployment.uid().is_none());
        uids.contains(owner.uid) || owner.kind == DEPLOYMENT.kind && is_named()
    };
    let controlled = |set: &Object| set.controller().is_some_and(|owner| is_known(set, &owner));
    let alone = sets.filter(|set| !controlled(set) && !is_selected(world, set));
    deployments.iter().copied().chain(alone).collect()
}

/// Whether a Deployment of the world selects this ReplicaSet, and so accounts for it.
fn is_selected(world: &World, set: &Object) -> bool {
    let mut deployments = world.in_namespace(&DEPLOYMENT, set.namespace());
    deployments.any(|deployment| selects(deployment, set))
}

/// The rollouts of a plan that a change concerns.
pub(super) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let mut keys = BTreeSet::new();
    if changed.kind == DEPLOYMENT {
        keys.insert(changed.clone());
    }
    let namespace = changed.namespace.as_str();
    let concerned = |object: &&Object| match world.get(changed) {
        // Gone, and with it the owner it named: every rollout that may have owned it.
        None => true,
        Some(changed) => concerns(object, changed) || concerns_relative(world, object, changed),
    };
    if [DEPLOYMENT, REPLICA_SET, POD].contains(&changed.kind) {
        let deployments = world.in_namespace(&DEPLOYMENT, namespace).collect();
        let sets = world.in_namespace(&REPLICA_SET, namespace);
        let rollouts = rollouts_among(world, deployments, sets).into_iter();
        keys.extend(rollouts.filter(concerned).map(|object| object.key().clone()));
    }
    keys.into_iter().collect()
}

/// What a decision of a plan looks at.
pub(super) fn snapshot<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    let namespace = rollout.namespace().as_str();
    let sets = world.in_namespace(&REPLICA_SET, namespace);
    let pods = needs_pods(rollout).then(|| world.in_namespace(&POD, namespace));
    Snapshot::new(rollout, sets.chain(pods.into_iter().flatten()))
}

/// Whether a pod belongs to a ReplicaSet, or to one of a Deployment.
pub(super) fn has_member(world: &World, rollout: &Object, pod: &str) -> bool {
    let pod = world.find(&POD, rollout.namespace(), pod);
    let set = pod.and_then(|pod| controller(world, &REPLICA_SET, pod));
    set.is_some_and(|set| set.key() == rollout.key() || is_controlled_by(set, rollout))
}

/// Whether a rollout looks at `changed` itself: it is it, owns it, or could adopt it.
pub(super) fn concerns(rollout: &Object, changed: &Object) -> bool {
    rollout.key() == changed.key()
        || match changed.controller() {
            Some(owner) => Some(owner.uid) == rollout.uid(),
            None => selects(rollout, changed),
        }
}

/// A pod concerns the Deployment of its ReplicaSet, and a ReplicaSet those beside it: where
/// siblings have pods decides which of its own go first.
fn concerns_relative(world: &World, rollout: &Object, changed: &Object) -> bool {
    let Some(owner) = changed.controller() else { return false };
    if *changed.kind() != POD {
        let beside = rollout.controller().is_some_and(|other| other.uid == owner.uid);
        return *rollout.kind() == REPLICA_SET && beside;
    }
    let set = world.find(&REPLICA_SET, changed.namespace(), owner.name);
    needs_pods(rollout)
        && set.is_some_and(|set| set.uid() == Some(owner.uid) && concerns(rollout, set))
}

/// The Deployments that a change concerns.
pub(super) fn affected_deployments(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    if changed.kind == DEPLOYMENT {
        return vec![changed.clone()];
    }
    let Some(object) = world.get(changed) else { return Vec::new() };
    if changed.kind == REPLICA_SET {
        return controllers_of(world, &DEPLOYMENT, object);
    }
    // A pod without a set belongs to no Deployment either.
    let set = controller(world, &REPLICA_SET, object);
    let mut keys = set.map_or_else(Vec::new, |set| controllers_of(world, &DEPLOYMENT, set));
    keys.retain(|key| world.get(key).is_some_and(needs_pods));
    keys
}

/// What the decision about a Deployment looks at.
pub(super) fn snapshot_of_deployment<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    let sets: Vec<&Object> = in_reach(world, &REPLICA_SET, rollout).collect();
    let own = sets.iter().filter(|set| is_controlled_by(set, rollout)).copied();
    let pods = needs_pods(rollout).then(|| own.flat_map(|set| pods_of(world, set)));
    let pods: Vec<&Object> = pods.into_iter().flatten().collect();
    Snapshot::new(rollout, sets.into_iter().chain(pods))
}

/// The ReplicaSets, or objects of another kind with pods, that a change concerns.
pub(super) fn affected_sets(
    world: &World,
    kind: &GroupKind,
    changed: &ObjectKey,
) -> Vec<ObjectKey> {
    if changed.kind == *kind {
        return vec![changed.clone()];
    }
    let pod = world.get(changed).filter(|_| changed.kind == POD);
    pod.map_or_else(Vec::new, |pod| controllers_of(world, kind, pod))
}

/// What the decision about a ReplicaSet looks at: its pods, its siblings and theirs.
pub(super) fn snapshot_of_replica_set<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    let siblings: Vec<&Object> = match rollout.controller() {
        Some(owner) => world.controlled(&REPLICA_SET, rollout.namespace(), owner.uid).collect(),
        None => vec![rollout],
    };
    let others = siblings.iter().filter(|set| set.key() != rollout.key());
    let beside = others.flat_map(|set| pods_of(world, set));
    let pods: Vec<&Object> = in_reach(world, &POD, rollout).chain(beside).collect();
    Snapshot::new(rollout, siblings.into_iter().chain(pods))
}

fn pods_of<'w>(world: &'w World, set: &Object) -> impl Iterator<Item = &'w Object> + use<'w> {
    world.controlled(&POD, set.namespace(), set.uid().unwrap_or_default())
}
