//! What the dialect looks at: the kinds it reads, the part of the world one decision sees,
//! and which decisions a change touches.

pub(crate) mod hub;

use std::collections::BTreeSet;

use convoy_api::ocm::names::{
    ADD_ON_PLACEMENT_SCORE, MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING,
    MANIFEST_WORK, MANIFEST_WORK_REPLICA_SET, PLACEMENT, PLACEMENT_DECISION, PLACEMENT_LABEL,
    REPLICA_SET_LABEL,
};
use convoy_api::{Object, ObjectKey};

use super::read::cluster::Membership;
use super::read::decisions::clusters_of;
use super::read::placement::{asks_for, chooses, reads_score};
use super::read::replica_set::{owner_value, referenced};
use crate::dialect::{Keep, NamedKind, Watch};
use crate::snapshot::Snapshot;
use crate::world::World;

/// What people call rollouts.
pub(crate) const ROLLOUT_KINDS: &[NamedKind] = &[
    NamedKind { kind: PLACEMENT, short: &[] },
    NamedKind { kind: MANIFEST_WORK_REPLICA_SET, short: &["mwrs"] },
];

/// Clusters are kept whole because expressions may ask for any part of them, works because
/// their spec is compared with the template.
pub(crate) const WATCHES: &[Watch] = &[
    Watch { kind: MANAGED_CLUSTER, keep: Keep::Whole },
    Watch { kind: MANAGED_CLUSTER_SET, keep: Keep::Whole },
    Watch { kind: MANAGED_CLUSTER_SET_BINDING, keep: Keep::Fields(&["spec"]) },
    Watch { kind: PLACEMENT, keep: Keep::Whole },
    Watch { kind: PLACEMENT_DECISION, keep: Keep::Fields(&["status.decisions"]) },
    Watch { kind: ADD_ON_PLACEMENT_SCORE, keep: Keep::Fields(&["status"]) },
    Watch { kind: MANIFEST_WORK_REPLICA_SET, keep: Keep::Whole },
    Watch { kind: MANIFEST_WORK, keep: Keep::Whole },
];

/// What a decision about `rollout` looks at.
pub(crate) fn snapshot<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    if *rollout.kind() == PLACEMENT {
        // Others may have to go first, so what they choose from is looked at too.
        let others = world.of(&PLACEMENT).filter(|other| other.key() != rollout.key());
        let bindings = world.of(&MANAGED_CLUSTER_SET_BINDING);
        let elsewhere = bindings.filter(|binding| binding.namespace() != rollout.namespace());
        return Snapshot::new(rollout, surroundings(world, rollout).chain(others).chain(elsewhere));
    }
    let owner = owner_value(rollout);
    let works = world.of(&MANIFEST_WORK);
    let mut objects: Vec<&'w Object> =
        works.filter(|work| work.label(REPLICA_SET_LABEL) == Some(&owner)).collect();
    let mut undecided = false;
    for name in referenced(rollout).collect::<BTreeSet<_>>() {
        let Some(placement) = world.find(&PLACEMENT, rollout.namespace(), name) else { continue };
        objects.push(placement);
        let before = objects.len();
        objects.extend(decisions_of(world, placement));
        undecided |= objects.len() == before;
    }
    if undecided {
        // A placement that has no decisions yet is scheduled on the spot.
        objects.extend(surroundings(world, rollout));
    }
    Snapshot::new(rollout, objects)
}

/// What scheduling looks at.
fn surroundings<'w>(world: &'w World, near: &'w Object) -> impl Iterator<Item = &'w Object> {
    world
        .in_namespace(&MANAGED_CLUSTER_SET_BINDING, near.namespace())
        .chain(world.of(&MANAGED_CLUSTER_SET))
        .chain(world.of(&MANAGED_CLUSTER))
        .chain(world.of(&PLACEMENT_DECISION))
        .chain(world.of(&ADD_ON_PLACEMENT_SCORE))
}

fn decisions_of<'w>(world: &'w World, placement: &'w Object) -> impl Iterator<Item = &'w Object> {
    let nearby = world.in_namespace(&PLACEMENT_DECISION, placement.namespace());
    nearby.filter(|decision| decision.label(PLACEMENT_LABEL) == Some(placement.name()))
}

/// Whether a cluster was decided on by a placement, or has a work of a replica set.
pub(crate) fn has_member(world: &World, rollout: &Object, cluster: &str) -> bool {
    if *rollout.kind() == PLACEMENT {
        let mut decisions = decisions_of(world, rollout);
        return decisions.any(|decision| clusters_of(decision).any(|name| name == cluster));
    }
    let owner = owner_value(rollout);
    let mut works = world.in_namespace(&MANIFEST_WORK, cluster);
    works.any(|work| work.label(REPLICA_SET_LABEL) == Some(&owner))
}

/// Which rollouts to look at again. Where a vanished object no longer says whom it concerned,
/// everybody it may have concerned is named.
pub(crate) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let mut found = BTreeSet::new();
    let kind = &changed.kind;
    if *kind == PLACEMENT || *kind == MANIFEST_WORK_REPLICA_SET {
        found.insert(changed.clone());
    }
    if *kind == MANIFEST_WORK {
        found.extend(owners(world, changed));
    } else {
        found.extend(placements(world, changed).map(|placement| placement.key().clone()));
    }
    let touched: Vec<ObjectKey> =
        found.iter().filter(|key| key.kind == PLACEMENT).cloned().collect();
    for placement in touched {
        let nearby = world.in_namespace(&MANIFEST_WORK_REPLICA_SET, &placement.namespace);
        let referring = nearby.filter(|set| referenced(set).any(|name| name == placement.name));
        found.extend(referring.map(|set| set.key().clone()));
    }
    if *kind == PLACEMENT_DECISION {
        let others = world.of(&PLACEMENT).filter(|placement| chooses(placement));
        found.extend(others.map(|placement| placement.key().clone()));
    }
    found.retain(|key| world.get(key).is_some());
    found.into_iter().collect()
}

/// Whether a rollout has to stand still because an object that it looks at was refused.
pub(crate) fn hangs_on(world: &World, rollout: &Object, refused: &Object) -> bool {
    if *rollout.kind() == PLACEMENT {
        let in_reach = *refused.kind() != MANAGED_CLUSTER || may_select(world, rollout, refused);
        return in_reach
            && placements(world, refused.key()).any(|placement| placement.key() == rollout.key());
    }
    let referenced = referenced(rollout).collect::<BTreeSet<_>>().into_iter();
    let mut referenced =
        referenced.filter_map(|name| world.find(&PLACEMENT, rollout.namespace(), name));
    [MANIFEST_WORK, PLACEMENT].contains(refused.kind())
        || referenced.any(|placement| hangs_on(world, placement, refused))
}

/// Whether a placement has a cluster, or could choose it: it is in a set that is bound and
/// asked for. A set that cannot be read holds the placement by itself.
fn may_select(world: &World, placement: &Object, cluster: &Object) -> bool {
    let decided = |decision: &Object| clusters_of(decision).any(|name| name == cluster.name());
    let bound = |binding: &Object| {
        let set = world.find(&MANAGED_CLUSTER_SET, "", binding.name());
        asks_for(placement, binding.name())
            && set.is_some_and(|set| {
                Membership::read(set).is_ok_and(|members| members.contains(cluster))
            })
    };
    decisions_of(world, placement).any(decided)
        || world.in_namespace(&MANAGED_CLUSTER_SET_BINDING, placement.namespace()).any(bound)
}

/// The replica set that a work belongs to.
fn owners(world: &World, work: &ObjectKey) -> Vec<ObjectKey> {
    let owner = world.get(work).and_then(|work| work.label(REPLICA_SET_LABEL));
    match (world.get(work), owner.and_then(|owner| owner.split_once('.'))) {
        (Some(_), None) => Vec::new(),
        (Some(_), Some((namespace, name))) => {
            vec![MANIFEST_WORK_REPLICA_SET.key(namespace, name)]
        }
        (None, _) => world.of(&MANIFEST_WORK_REPLICA_SET).map(|set| set.key().clone()).collect(),
    }
}

/// The placements whose scheduling may come out differently.
fn placements<'w>(
    world: &'w World,
    changed: &'w ObjectKey,
) -> Box<dyn Iterator<Item = &'w Object> + 'w> {
    let all = world.of(&PLACEMENT);
    let kind = &changed.kind;
    if *kind == PLACEMENT_DECISION {
        let label = world.get(changed).and_then(|decision| decision.label(PLACEMENT_LABEL));
        let nearby = world.in_namespace(&PLACEMENT, &changed.namespace);
        Box::new(
            nearby.filter(move |placement| label.is_none_or(|label| label == placement.name())),
        )
    } else if *kind == MANAGED_CLUSTER_SET_BINDING {
        let nearby = world.in_namespace(&PLACEMENT, &changed.namespace);
        Box::new(nearby.filter(|placement| asks_for(placement, &changed.name)))
    } else if *kind == MANAGED_CLUSTER_SET {
        let bound = |placement: &&Object| {
            let key = (&MANAGED_CLUSTER_SET_BINDING, placement.namespace(), &changed.name);
            world.find(key.0, key.1, key.2).is_some() && asks_for(placement, &changed.name)
        };
        Box::new(all.filter(bound))
    } else if *kind == MANAGED_CLUSTER {
        // Which sets its former labels belonged to is not known any more.
        let bound = |placement: &&Object| {
            world.in_namespace(&MANAGED_CLUSTER_SET_BINDING, placement.namespace()).next().is_some()
        };
        Box::new(all.filter(bound))
    } else if *kind == ADD_ON_PLACEMENT_SCORE {
        Box::new(all.filter(|placement| reads_score(placement, &changed.name)))
    } else {
        Box::new(std::iter::empty())
    }
}
