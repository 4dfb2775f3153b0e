//! The kinds that are read on the hub and on the member, what a decision looks at, and which
//! rollouts a change concerns.

use std::collections::BTreeSet;

use convoy_api::kinds::{NAMESPACE, NODE, POD};
use convoy_api::{Object, ObjectKey};
use smol_str::SmolStr;

use super::names::{APPLIED_WORK, INTERNAL_MEMBER_CLUSTER, WORK, member_namespace};
use super::read::manifest::{Identifier, manifests};
use super::read::recorded;
use crate::dialect::{Keep, Need, Watch};
use crate::snapshot::Snapshot;
use crate::world::World;

/// On the hub.
pub(super) static WATCHES: [Watch; 2] = [
    Watch { kind: WORK, keep: Keep::Whole },
    Watch { kind: INTERNAL_MEMBER_CLUSTER, keep: Keep::Whole },
];

/// On the member. The kinds of the manifests come on top, as they are found in Works.
pub(super) static MEMBER_WATCHES: [Watch; 3] = [
    Watch { kind: APPLIED_WORK, keep: Keep::Whole },
    Watch { kind: NODE, keep: Keep::Fields(&["status.capacity", "status.allocatable"]) },
    Watch {
        kind: POD,
        keep: Keep::Fields(&[
            "spec.nodeName",
            "spec.containers",
            "spec.initContainers",
            "spec.overhead",
            "status.phase",
        ]),
    },
];

pub(super) fn rollouts<'w>(world: &'w World, member: &str) -> Vec<&'w Object> {
    let home = member_namespace(member);
    let mut found: Vec<&Object> =
        world.find(&INTERNAL_MEMBER_CLUSTER, &home, member).into_iter().collect();
    found.extend(world.in_namespace(&WORK, &home));
    found.sort_by(|one, other| one.key().cmp(other.key()));
    found
}

pub(super) fn is_rollout(object: &Object, member: &str) -> bool {
    let key = object.key();
    let at_home = key.cluster.is_empty() && *key.namespace == *member_namespace(member);
    let is_internal = key.kind == INTERNAL_MEMBER_CLUSTER && key.name == member;
    at_home && (key.kind == WORK || is_internal)
}

pub(super) fn affected(world: &World, changed: &ObjectKey, member: &str) -> Vec<ObjectKey> {
    let home = member_namespace(member);
    let works = || world.in_namespace(&WORK, &home);
    if changed.cluster.is_empty() {
        let itself = world.get(changed).filter(|object| is_rollout(object, member));
        let mut found: Vec<ObjectKey> = itself.iter().map(|it| it.key().clone()).collect();
        if *changed.namespace == *home && changed.kind == INTERNAL_MEMBER_CLUSTER {
            found.extend(works().map(|work| work.key().clone()));
        }
        // While the member leaves, it waits for its Works.
        if *changed.namespace == *home && changed.kind == WORK {
            found.extend(
                world.find(&INTERNAL_MEMBER_CLUSTER, &home, member).map(|it| it.key().clone()),
            );
        }
        return found;
    }
    if changed.cluster != member {
        return Vec::new();
    }
    if changed.kind == APPLIED_WORK {
        return world
            .find(&WORK, &home, &changed.name)
            .map(|work| work.key().clone())
            .into_iter()
            .collect();
    }
    // Pods of controllers come and go all the time, and are never in a Work.
    let is_derived = world.get(changed).is_some_and(|object| object.controller().is_some());
    if changed.kind == POD && is_derived {
        return Vec::new();
    }
    let names = |work: &&Object| identifiers(work).any(|it| it.key(member) == *changed);
    works().filter(names).map(|work| work.key().clone()).collect()
}

pub(super) fn snapshot<'w>(world: &'w World, rollout: &'w Object, member: &str) -> Snapshot<'w> {
    let home = member_namespace(member);
    let mut found: Vec<&Object> = world.in_namespace(&WORK, &home).collect();
    if *rollout.kind() == INTERNAL_MEMBER_CLUSTER {
        found.extend(world.of_cluster(member, &NODE));
        found.extend(world.of_cluster(member, &POD));
        found.extend(world.of_cluster(member, &NAMESPACE));
        return Snapshot::new(rollout, found);
    }
    found.extend(world.find(&INTERNAL_MEMBER_CLUSTER, &home, member));
    let applied = world.get(&applied_work(rollout, member));
    found.extend(applied);
    let recorded = applied.map(recorded::of_applied_work).unwrap_or_default();
    let keys: BTreeSet<ObjectKey> =
        identifiers(rollout).chain(recorded).map(|it| it.key(member)).collect();
    found.extend(keys.iter().filter_map(|key| world.get(key)));
    Snapshot::new(rollout, found).within(world)
}

/// What a decision about a rollout reads on the member: for a Work also the kinds of its
/// manifests, and of what it had applied, in their versions; for the membership the namespaces, if
/// they are collected.
pub(super) fn needs(
    world: &World,
    rollout: &Object,
    member: &str,
    collects_namespaces: bool,
) -> Vec<Need> {
    let mut needs = vec![Need::Member { cluster: SmolStr::new(member) }];
    if *rollout.kind() != WORK {
        let (collection, version) = (NAMESPACE.in_cluster(member), SmolStr::new_static("v1"));
        needs.extend(collects_namespaces.then_some(Need::Kind { collection, version }));
        return needs;
    }
    let applied = world.get(&applied_work(rollout, member));
    let recorded = applied.map(recorded::of_applied_work).unwrap_or_default();
    let known = identifiers(rollout).chain(recorded);
    let known = known.filter(|it| !it.kind.kind.is_empty() && !it.version.is_empty());
    needs.extend(
        known.map(|it| Need::Kind { collection: it.kind.in_cluster(member), version: it.version }),
    );
    needs.sort();
    needs.dedup();
    needs
}

fn applied_work(work: &Object, member: &str) -> ObjectKey {
    ObjectKey { cluster: SmolStr::new(member), ..APPLIED_WORK.key("", work.name()) }
}

/// The objects that a Work is about, or was.
fn identifiers(work: &Object) -> impl Iterator<Item = Identifier> {
    let recorded = recorded::of_work(work).into_iter().map(|it| it.identifier);
    manifests(work).into_iter().map(|it| it.identifier).chain(recorded)
}

#[cfg(test)]
mod tests {
    use convoy_api::kinds::CONFIG_MAP;
    use serde_json::json;

    use super::*;

    fn object(raw: serde_json::Value) -> Object {
        Object::from_value(raw).unwrap()
    }

    #[test]
    fn a_work_needs_the_kinds_of_its_manifests_on_the_member() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "shop"}});
        let work = object(json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
            "kind": "Work", "metadata": {"name": "w", "namespace": "fleet-member-a"},
            "spec": {"workload": {"manifests": [map, map]}}}));
        let member = Need::Member { cluster: SmolStr::new("a") };
        let (collection, version) = (CONFIG_MAP.in_cluster("a"), SmolStr::new("v1"));
        let maps = Need::Kind { collection, version };
        assert_eq!(needs(&World::new(), &work, "a", true), [member.clone(), maps]);
        let internal = object(json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "InternalMemberCluster",
            "metadata": {"name": "a", "namespace": "fleet-member-a"}}));
        assert_eq!(needs(&World::new(), &internal, "a", false), std::slice::from_ref(&member));
        let (collection, version) = (NAMESPACE.in_cluster("a"), SmolStr::new("v1"));
        let namespaces = Need::Kind { collection, version };
        assert_eq!(needs(&World::new(), &internal, "a", true), [member, namespaces]);
    }
}
