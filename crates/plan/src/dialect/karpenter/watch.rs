//! The kinds that the dialect reads, and which pools a change concerns.

use std::collections::BTreeSet;

use convoy_api::{Object, ObjectKey};
use smol_str::SmolStr;

use super::names::{self, DAEMON_SET, NODE, POD, POD_DISRUPTION_BUDGET, VOLUME_ATTACHMENT};
use super::read::{claim, node, pool};
use crate::dialect::{Keep, NamedKind, Watch};
use crate::pods::node_of;
use crate::snapshot::Snapshot;
use crate::world::World;

/// What people call rollouts.
pub(crate) const ROLLOUT_KINDS: &[NamedKind] = &[NamedKind { kind: names::NODE_POOL, short: &[] }];

pub(crate) const WATCHES: &[Watch] = &[
    Watch { kind: names::NODE_POOL, keep: Keep::Whole },
    Watch { kind: names::NODE_CLAIM, keep: Keep::Whole },
    Watch { kind: names::KWOK_NODE_CLASS, keep: Keep::Whole },
    Watch {
        kind: NODE,
        keep: Keep::Fields(&["spec", "status.allocatable", "status.capacity", "status.conditions"]),
    },
    Watch {
        kind: POD,
        keep: Keep::Fields(&[
            "spec",
            "status.phase",
            "status.startTime",
            "status.nominatedNodeName",
            "status.conditions",
            "status.containerStatuses",
        ]),
    },
    Watch {
        kind: POD_DISRUPTION_BUDGET,
        keep: Keep::Fields(&["spec", "status.disruptionsAllowed"]),
    },
    Watch { kind: DAEMON_SET, keep: Keep::Fields(&["spec.template"]) },
    Watch { kind: VOLUME_ATTACHMENT, keep: Keep::Fields(&["spec"]) },
];

/// The pools to decide about again. Pods and nodes of one pool can make room for those of
/// another, so a change of anything but a pool concerns all pools of the cluster.
pub(crate) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    if changed.kind == names::NODE_POOL {
        return vec![changed.clone()];
    }
    if !WATCHES.iter().any(|watch| watch.kind == changed.kind) {
        return Vec::new();
    }
    world.of_cluster(&changed.cluster, &names::NODE_POOL).map(|pool| pool.key().clone()).collect()
}

/// The claims to look at again.
pub(crate) fn affected_claims(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let claims = || world.of_cluster(&changed.cluster, &names::NODE_CLAIM);
    // Only the end of a claim whose pool is gone depends on anything but its Node and class.
    let ends_alone = |claim: &&Object| claim.is_deleting() && !is_pooled(world, claim);
    let key = |claim: &Object| claim.key().clone();
    match &changed.kind {
        kind if *kind == names::NODE_CLAIM => {
            // Those that have the same machine wait for its Node together.
            let id = world.get(changed).map_or("", claim::provider_id);
            let others = world.of_machine(&changed.cluster, kind, id).filter(|_| !id.is_empty());
            let others = others.map(key).filter(|other| other != changed);
            others.chain([changed.clone()]).collect()
        }
        kind if *kind == NODE => claims_of_node(world, changed).into_iter().map(key).collect(),
        kind if *kind == names::KWOK_NODE_CLASS => {
            let registered = names::condition::REGISTERED;
            let is_new = |claim: &&Object| claim.condition_status(registered) != Some("True");
            claims().filter(is_new).map(key).collect()
        }
        kind if [POD, VOLUME_ATTACHMENT].contains(kind) => {
            let node = world.get(changed).and_then(node_of).unwrap_or_default();
            let node = changed.sibling(&NODE, "", node);
            claims_of_node(world, &node).into_iter().filter(ends_alone).map(key).collect()
        }
        kind if WATCHES.iter().any(|watch| watch.kind == *kind) => {
            let cluster = &changed.cluster;
            let pools: BTreeSet<&str> = world
                .of_cluster(cluster, &names::NODE_POOL)
                .map(|pool| pool.name().as_str())
                .collect();
            let is_alone = |claim: &&Object| !pools.contains(pool_name(claim));
            world.deleting(cluster, &names::NODE_CLAIM).filter(is_alone).map(key).collect()
        }
        _ => Vec::new(),
    }
}

/// The Nodes without a claim of their own to look at again.
pub(crate) fn affected_nodes(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let found: Vec<&Object> = match &changed.kind {
        kind if *kind == NODE => world.get(changed).into_iter().collect(),
        kind if *kind == names::NODE_CLAIM => {
            let id = world.get(changed).map_or("", claim::provider_id);
            world.of_machine(&changed.cluster, &NODE, id).filter(|_| !id.is_empty()).collect()
        }
        kind if [POD, VOLUME_ATTACHMENT].contains(kind) => {
            let node = world.get(changed).and_then(node_of).unwrap_or_default();
            world.get(&changed.sibling(&NODE, "", node)).into_iter().collect()
        }
        kind if *kind == POD_DISRUPTION_BUDGET => world.deleting(&changed.cluster, &NODE).collect(),
        _ => Vec::new(),
    };
    // Asked before and after: a claim may be what changes this.
    let may_be_alone = |node: &&Object| is_ending(node);
    found.into_iter().filter(may_be_alone).map(|node| node.key().clone()).collect()
}

/// Whether a Node is being deleted, and has no claim of its own that sees to it: none has its
/// machine, or several have.
pub(crate) fn is_alone(world: &World, node: &Object) -> bool {
    if !is_ending(node) {
        return false;
    }
    let id = node::provider_id(node);
    let claims = world.of_machine(&node.key().cluster, &names::NODE_CLAIM, id);
    claims.filter(|_| !id.is_empty()).count() != 1
}

/// Whether a Node of our node class waits for our finalizer.
fn is_ending(node: &Object) -> bool {
    node.is_deleting()
        && node.has_finalizer(names::FINALIZER)
        && node.label(names::KWOK_CLASS_LABEL).is_some()
}

/// What the end of a Node without a claim of its own depends on.
pub(crate) fn node_snapshot<'w>(world: &'w World, node: &'w Object) -> Snapshot<'w> {
    let cluster = &node.key().cluster;
    let beside = [POD, POD_DISRUPTION_BUDGET, VOLUME_ATTACHMENT];
    let beside = beside.into_iter().flat_map(|kind| world.of_cluster(cluster, &kind));
    Snapshot::new(node, [node].into_iter().chain(beside))
}

/// The claims of the machine that a Node is, and the one of its name.
fn claims_of_node<'w>(world: &'w World, node: &ObjectKey) -> Vec<&'w Object> {
    let id = world.get(node).map_or("", node::provider_id);
    let named = world.get(&node.sibling(&names::NODE_CLAIM, "", &node.name));
    let of_machine = world
        .of_machine(&node.cluster, &names::NODE_CLAIM, id)
        .filter(|claim| !id.is_empty() && *claim.name() != node.name);
    named.into_iter().chain(of_machine).collect()
}

fn is_pooled(world: &World, claim: &Object) -> bool {
    world.get(&claim.key().sibling(&names::NODE_POOL, "", pool_name(claim))).is_some()
}

/// The name of the pool that a claim says it belongs to.
fn pool_name(claim: &Object) -> &str {
    claim.label(names::label::NODE_POOL).unwrap_or_default()
}

/// Whether the pool of a claim is in its snapshot.
pub(crate) fn has_pool(snapshot: &Snapshot<'_>, claim: &Object) -> bool {
    snapshot.get(&claim.key().sibling(&names::NODE_POOL, "", pool_name(claim))).is_some()
}

/// What the life of one claim depends on: its Node and node class. Its end, if its pool is gone,
/// also depends on pods.
pub(crate) fn claim_snapshot<'w>(world: &'w World, claim: &'w Object) -> Snapshot<'w> {
    let key = claim.key();
    let node = claim::node_name(claim);
    let id = claim::provider_id(claim);
    let named = Some(node).filter(|node| !node.is_empty());
    let named = named.and_then(|node| world.get(&key.sibling(&NODE, "", node)));
    // Until it is named, and where other claims have the same machine.
    let of_machine = world.of_machine(&key.cluster, &NODE, id);
    let of_machine = of_machine.filter(|_| named.is_none() && !id.is_empty());
    let nodes: Vec<&Object> = named.into_iter().chain(of_machine).collect();
    let classes = world.of_cluster(&key.cluster, &names::KWOK_NODE_CLASS);
    let pool = world.get(&key.sibling(&names::NODE_POOL, "", pool_name(claim)));
    let twins = world.of_machine(&key.cluster, &names::NODE_CLAIM, id).filter(|_| !id.is_empty());
    let ends = claim.is_deleting() && pool.is_none();
    let beside = [POD, POD_DISRUPTION_BUDGET, VOLUME_ATTACHMENT].into_iter().filter(|_| ends);
    let beside = beside.flat_map(|kind| world.of_cluster(&key.cluster, &kind));
    let claims = [claim].into_iter().chain(twins);
    Snapshot::new(claim, claims.chain(nodes).chain(classes).chain(pool).chain(beside))
}

/// The names by which pools may know a node or claim: its own, and that of its claim or Node.
pub(crate) fn member_names(world: &World, name: &str) -> Vec<SmolStr> {
    let claims = world.of(&names::NODE_CLAIM).filter(|claim| claim::node_name(claim) == name);
    let of_claims = claims.map(|claim| claim.name().clone());
    let claim = world.find(&names::NODE_CLAIM, "", name);
    let node = claim.map(claim::node_name).filter(|node| !node.is_empty()).map(SmolStr::new);
    [SmolStr::new(name)].into_iter().chain(of_claims).chain(node).collect()
}

/// Everything of the pool's cluster.
pub(crate) fn snapshot<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    let kinds = WATCHES.iter().map(|watch| &watch.kind);
    Snapshot::of_kinds(rollout, world, kinds).remembering(world.memory())
}

/// Whether a pool depends on an object that was refused: one of its claims, or its node class.
pub(crate) fn depends_on(rollout: &Object, refused: &Object) -> bool {
    if *refused.kind() == names::NODE_CLAIM {
        // A claim that does not name its pool may belong to any.
        let pool = refused.label(names::label::NODE_POOL);
        return pool.is_none_or(|pool| pool == rollout.name());
    }
    *refused.kind() == names::KWOK_NODE_CLASS && pool::may_name_class(rollout, refused)
}
