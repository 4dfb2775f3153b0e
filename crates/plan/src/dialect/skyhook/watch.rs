//! Which objects Skyhooks depend on, and which Skyhooks a change concerns.

use convoy_api::kinds::{CONFIG_MAP, NODE, POD, POD_DISRUPTION_BUDGET};
use convoy_api::skyhook::{DEPLOYMENT_POLICY, SKYHOOK};
use convoy_api::{Object, ObjectKey};

use crate::dialect::skyhook::decide::orphan::is_orphan;
use crate::dialect::skyhook::names::{CORDON, DISABLE, Keys, NAME, NODE_META, PAUSE};
use crate::dialect::skyhook::read::hook::{has_same_config_updates, policy_name, targets};
use crate::dialect::{Keep, NamedKind, Watch};
use crate::pods::node_of;
use crate::snapshot::Snapshot;
use crate::world::World;

/// What people call rollouts.
pub(super) const ROLLOUT_KINDS: &[NamedKind] = &[NamedKind { kind: SKYHOOK, short: &[] }];

pub(super) const WATCHES: &[Watch] = &[
    Watch { kind: SKYHOOK, keep: Keep::Whole },
    Watch { kind: DEPLOYMENT_POLICY, keep: Keep::Whole },
    Watch {
        kind: NODE,
        keep: Keep::Fields(&[
            "spec.taints",
            "spec.unschedulable",
            "status.conditions",
            "status.nodeInfo.bootID",
        ]),
    },
    Watch {
        kind: POD,
        keep: Keep::Fields(&[
            "spec.nodeName",
            "spec.tolerations",
            "spec.initContainers",
            "status.phase",
            "status.initContainerStatuses",
        ]),
    },
    Watch {
        kind: POD_DISRUPTION_BUDGET,
        keep: Keep::Fields(&["spec.selector", "status.disruptionsAllowed"]),
    },
    Watch { kind: CONFIG_MAP, keep: Keep::Whole },
];

/// Skyhooks, and the package pods of Skyhooks that do not exist.
pub(super) fn rollouts(world: &World) -> Vec<&Object> {
    let orphans = world.of(&POD).filter(|pod| is_orphan(world, pod));
    orphans.chain(world.of(&SKYHOOK)).collect()
}

pub(super) fn is_rollout(world: &World, object: &Object) -> bool {
    *object.kind() == SKYHOOK || is_orphan(world, object)
}

/// The rollouts to look at again after `changed` changed.
pub(super) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let named = affected_by_name(world, changed);
    let skyhooks = world.of(&SKYHOOK).filter(|skyhook| match &named {
        Some(test) => test(skyhook),
        None => true,
    });
    skyhooks.map(|skyhook| skyhook.key().clone()).chain(affected_orphans(world, changed)).collect()
}

/// Whether other Skyhooks may ignore the change. Of another Skyhook they look at its spec,
/// whether it is paused, disabled or being deleted, and which config of its packages changed.
pub(super) fn is_own_matter(before: &Object, after: &Object) -> bool {
    let annotations =
        |object: &Object| [PAUSE, DISABLE].map(|key| object.annotation(key) == Some("true"));
    *after.kind() == SKYHOOK
        && before.uid() == after.uid()
        && before.is_deleting() == after.is_deleting()
        && annotations(before) == annotations(after)
        && has_same_config_updates(before, after)
        && before.spec() == after.spec()
}

pub(super) fn snapshot<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    if *rollout.kind() == POD {
        let node = node_of(rollout).and_then(|name| world.find(&NODE, "", name));
        return Snapshot::new(rollout, node);
    }
    let relevant = |map: &&Object| map.label(NAME).or_else(|| map.label(NODE_META)).is_some();
    let objects = world.of(&SKYHOOK).filter(|other| other.key() != rollout.key());
    let objects = objects.chain(world.of(&DEPLOYMENT_POLICY)).chain(world.of(&NODE));
    let objects = objects.chain(world.of(&POD)).chain(world.of(&POD_DISRUPTION_BUDGET));
    Snapshot::new(rollout, objects.chain(world.of(&CONFIG_MAP).filter(relevant)))
}

/// Whether a Skyhook selects a node.
pub(super) fn has_member(world: &World, skyhook: &Object, node: &str) -> bool {
    let node = world.find(&NODE, "", node).filter(|_| *skyhook.kind() == SKYHOOK);
    node.is_some_and(|node| targets(skyhook).is_ok_and(|selector| selector.matches(node)))
}

pub(super) fn hangs_on(rollout: &Object, refused: &Object) -> bool {
    *refused.kind() == DEPLOYMENT_POLICY && policy_name(rollout) == Some(refused.name())
}

/// The orphaned pods to look at again: the changed pod, or those whose Skyhook is gone.
fn affected_orphans(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let object = world.get(changed);
    let pods: Vec<&Object> = match object {
        Some(object) if changed.kind == POD => vec![object],
        None if changed.kind == SKYHOOK => {
            world.of(&POD).filter(|pod| pod.label(NAME) == Some(&changed.name)).collect()
        }
        _ => Vec::new(),
    };
    let orphans = pods.into_iter().filter(|pod| is_orphan(world, pod));
    orphans.map(|pod| pod.key().clone()).collect()
}

type Test<'t> = Box<dyn Fn(&Object) -> bool + 't>;

/// Which Skyhooks a change concerns, where the changed object still tells.
fn affected_by_name<'t>(world: &'t World, changed: &'t ObjectKey) -> Option<Test<'t>> {
    let object = world.get(changed);
    if changed.kind == DEPLOYMENT_POLICY {
        return Some(Box::new(|skyhook| policy_name(skyhook) == Some(&changed.name)));
    }
    if object.is_none() && (changed.kind == POD || changed.kind == CONFIG_MAP) {
        return Some(Box::new(|_| false)); // the world before the deletion tells
    }
    let object = object?;
    if changed.kind == NODE {
        return Some(Box::new(move |skyhook| {
            let keys = Keys::of(skyhook.name());
            // A node that was a member carries a status word, even if it is no longer one.
            object.annotation(&keys.status).is_some()
                || targets(skyhook).is_ok_and(|selector| selector.matches(object))
        }));
    }
    if changed.kind == POD {
        let owner = object.label(NAME);
        let node = node_of(object).and_then(|name| world.find(&NODE, "", name));
        // Drains and interrupts wait for the pods of others to be gone from the node, and both
        // have it cordoned first.
        return Some(Box::new(move |skyhook| {
            let cordon = || format!("{CORDON}{}", skyhook.name());
            owner == Some(skyhook.name())
                || node.is_some_and(|node| node.annotation(&cordon()).is_some())
        }));
    }
    if changed.kind == CONFIG_MAP {
        let owner = object.label(NAME).or_else(|| object.label(NODE_META));
        return Some(Box::new(move |skyhook| owner == Some(skyhook.name())));
    }
    None
}
