//! Pods that carry the finalizer of Jobs, and that no Job will count any more: their Job is gone,
//! or they have no controller and no Job selects them. The finalizer would keep them for ever, so
//! each is a rollout of its own until it has lost it.

use convoy_api::kinds::{JOB, POD};
use convoy_api::object::meta::OwnerReference;
use convoy_api::{Object, ObjectKey};

use crate::dialect::workloads::names::JOB_TRACKING;
use crate::ownership::controllers_of;
use crate::world::World;

/// Whether an object is such a pod.
pub(crate) fn is_orphan(world: &World, object: &Object) -> bool {
    *object.kind() == POD
        && object.has_finalizer(JOB_TRACKING)
        && object.controller().is_none_or(|reference| is_job(&reference))
        && controllers_of(world, &JOB, object).is_empty()
}

fn is_job(reference: &OwnerReference<'_>) -> bool {
    let group = reference.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    reference.kind == JOB.kind && group == JOB.group
}

/// The pods that a Job has left behind; none while it is there.
pub(crate) fn left_by(world: &World, job: &ObjectKey) -> Vec<ObjectKey> {
    if world.get(job).is_some() {
        return Vec::new();
    }
    let was_its_own =
        |pod: &&Object| pod.controller().is_none_or(|reference| job.name == reference.name);
    let pods = world.in_namespace(&POD, &job.namespace).filter(was_its_own);
    pods.filter(|pod| is_orphan(world, pod)).map(|pod| pod.key().clone()).collect()
}
