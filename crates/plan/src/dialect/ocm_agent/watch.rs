//! The kinds that are read on the hub and on the member, and what a decision looks at.

pub(crate) mod affected;

use std::collections::BTreeSet;

use convoy_api::ocm::names::{APPLIED_MANIFEST_WORK, MANIFEST_WORK};
use convoy_api::{Object, ObjectKey};
use smol_str::SmolStr;

use super::Options;
use super::decide::work::applied_work;
use super::names::CUSTOM_RESOURCE_DEFINITION;
use super::read::executor::{RIGHTS, has_executor};
use super::read::kinds::Kinds;
use super::read::manifest::items;
use super::read::recorded::{agent_id, applied_resources, work_name};
use crate::dialect::{Keep, Need, Watch};
use crate::snapshot::Snapshot;
use crate::world::World;

/// On the hub.
pub(super) static WATCHES: [Watch; 1] = [Watch { kind: MANIFEST_WORK, keep: Keep::Whole }];

/// On the member. The kinds of the manifests come on top, as they are found in works.
pub(super) static MEMBER_WATCHES: [Watch; 2] = [
    Watch { kind: APPLIED_MANIFEST_WORK, keep: Keep::Whole },
    Watch {
        kind: CUSTOM_RESOURCE_DEFINITION,
        keep: Keep::Fields(&["spec.group", "spec.scope", "spec.names"]),
    },
];

pub(super) fn rollouts<'w>(world: &'w World, options: &Options) -> Vec<&'w Object> {
    let mut found: Vec<&Object> = world.in_namespace(&MANIFEST_WORK, &options.cluster).collect();
    let applied = world.of_cluster(&options.cluster, &APPLIED_MANIFEST_WORK);
    found.extend(applied.filter(|it| is_rollout(it, options)));
    found.sort_by(|one, other| one.key().cmp(other.key()));
    found
}

pub(super) fn is_rollout(object: &Object, options: &Options) -> bool {
    let key = object.key();
    if key.cluster.is_empty() {
        return key.kind == MANIFEST_WORK && key.namespace == options.cluster;
    }
    let is_applied = key.kind == APPLIED_MANIFEST_WORK && key.cluster == options.cluster;
    is_applied && agent_id(object) == options.agent_id
}

pub(super) fn snapshot<'w>(
    world: &'w World,
    rollout: &'w Object,
    options: &Options,
) -> Snapshot<'w> {
    let member = &options.cluster;
    let mut found: Vec<&Object> = world.of_cluster(member, &CUSTOM_RESOURCE_DEFINITION).collect();
    let is_work = *rollout.kind() == MANIFEST_WORK;
    if is_work {
        found.extend(world.get(&applied_work(rollout, options)));
        let rights = RIGHTS.iter().filter(|_| has_executor(rollout));
        found.extend(rights.flat_map(|kind| world.of_cluster(member, kind)));
    } else {
        found.extend(world.find(&MANIFEST_WORK, member, work_name(rollout)));
    }
    found.extend(objects(world, rollout, options).iter().filter_map(|key| world.get(key)));
    Snapshot::new(rollout, found)
}

/// The objects that a rollout is about, or was.
fn objects(world: &World, rollout: &Object, options: &Options) -> BTreeSet<ObjectKey> {
    let member = &options.cluster;
    let kinds = Kinds::of_world(world, member);
    let is_work = *rollout.kind() == MANIFEST_WORK;
    let applied = if is_work { world.get(&applied_work(rollout, options)) } else { Some(rollout) };
    let recorded = applied.map(applied_resources).unwrap_or_default();
    let recorded = recorded.iter().filter_map(|it| it.key(&kinds, member));
    let manifests = if is_work { items(rollout, &kinds) } else { Vec::new() };
    manifests.iter().map(|it| it.key(member)).chain(recorded).collect()
}

/// What a decision about a rollout reads on the member: for a work the kinds of its manifests in
/// their versions, and always of what was applied.
pub(super) fn needs(world: &World, rollout: &Object, options: &Options) -> Vec<Need> {
    let member = &options.cluster;
    let kinds = Kinds::of_world(world, member);
    let mut needs = vec![Need::Member { cluster: member.clone() }];
    let is_work = *rollout.kind() == MANIFEST_WORK;
    let manifests = if is_work { items(rollout, &kinds) } else { Vec::new() };
    let known = manifests.into_iter().map(|it| it.identifier);
    let known = known.filter(|it| !it.kind.kind.is_empty() && !it.version.is_empty());
    needs.extend(
        known.map(|it| Need::Kind { collection: it.kind.in_cluster(member), version: it.version }),
    );
    if is_work && has_executor(rollout) {
        let rights = RIGHTS.iter().map(|kind| kind.in_cluster(member));
        let version = SmolStr::new_static("v1");
        needs.extend(rights.map(|collection| Need::Kind { collection, version: version.clone() }));
    }
    let applied = if is_work { world.get(&applied_work(rollout, options)) } else { Some(rollout) };
    // Nothing is read for one that stays as it is.
    let applied = applied.filter(|it| is_work || it.is_deleting());
    for resource in applied.map(applied_resources).unwrap_or_default() {
        if let Some(kind) = kinds.kind(&resource.group, &resource.resource) {
            let (collection, version) = (kind.in_cluster(member), SmolStr::new(&resource.version));
            needs.push(Need::Kind { collection, version });
        }
    }
    needs.sort();
    needs.dedup();
    needs
}
