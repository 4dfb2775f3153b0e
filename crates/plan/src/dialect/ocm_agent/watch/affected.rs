//! Which works a change concerns.

use convoy_api::kinds::POD;
use convoy_api::ocm::names::{APPLIED_MANIFEST_WORK, MANIFEST_WORK};
use convoy_api::{Object, ObjectKey};

use super::{is_rollout, objects};
use crate::built_in_kind;
use crate::dialect::ocm_agent::Options;
use crate::dialect::ocm_agent::names::CUSTOM_RESOURCE_DEFINITION;
use crate::dialect::ocm_agent::read::executor::{RIGHTS, has_executor};
use crate::dialect::ocm_agent::read::recorded::work_name;
use crate::world::World;

pub(crate) fn affected(world: &World, changed: &ObjectKey, options: &Options) -> Vec<ObjectKey> {
    let member = &options.cluster;
    let mut found: Vec<ObjectKey> = if changed.cluster.is_empty() {
        of_hub(world, changed, options)
    } else if changed.cluster != *member {
        return Vec::new();
    } else if changed.kind == APPLIED_MANIFEST_WORK {
        let name = changed.name.strip_prefix(options.hub_hash.as_str());
        let work = name.and_then(|name| name.strip_prefix('-'));
        let work = work.map(|name| MANIFEST_WORK.key(member, name));
        work.into_iter().chain([changed.clone()]).collect()
    } else {
        of_object(world, changed, options)
    };
    found.retain(|key| world.get(key).is_some_and(|object| is_rollout(object, options)));
    found
}

/// A work, and what stands for it on the member: of this hub, or of another.
fn of_hub(world: &World, changed: &ObjectKey, options: &Options) -> Vec<ObjectKey> {
    if changed.kind != MANIFEST_WORK || changed.namespace != options.cluster {
        return Vec::new();
    }
    let applied = world.of_cluster(&options.cluster, &APPLIED_MANIFEST_WORK);
    let of_it = applied.filter(|it| work_name(it) == changed.name);
    [changed.clone()].into_iter().chain(of_it.map(|it| it.key().clone())).collect()
}

/// The works that ask for an object, and those that go with it. A definition concerns all that
/// may have objects of its kind.
fn of_object(world: &World, changed: &ObjectKey, options: &Options) -> Vec<ObjectKey> {
    // Pods of controllers come and go all the time, and are never in a work.
    let is_derived = world.get(changed).is_some_and(|object| object.controller().is_some());
    if changed.kind == POD && is_derived {
        return Vec::new();
    }
    let is_right = RIGHTS.contains(&changed.kind);
    let is_definition = changed.kind == CUSTOM_RESOURCE_DEFINITION;
    let concerns = |rollout: &&Object| {
        let of_rollout = objects(world, rollout, options);
        of_rollout.contains(changed)
            || is_right && has_executor(rollout)
            || is_definition
                && of_rollout.iter().any(|key| built_in_kind::scope(&key.kind).is_none())
    };
    let works = world.in_namespace(&MANIFEST_WORK, &options.cluster).filter(concerns);
    let applied = world.of_cluster(&options.cluster, &APPLIED_MANIFEST_WORK);
    let going = applied.filter(|it| it.is_deleting()).filter(|it| is_definition || concerns(it));
    works.chain(going).map(|it| it.key().clone()).collect()
}
