//! Which objects endpoints are made of, and which Services a change concerns.

use convoy_api::kinds::{ENDPOINT_SLICE, ENDPOINTS, NODE, POD, SERVICE};
use convoy_api::{Object, ObjectKey};

use super::names::{
    CONTROLLER, LEADER, MANAGED_BY, MIRROR_CONTROLLER, SERVICE_NAME, SLICE_MANAGED_BY,
};
use super::read::{is_reached_alike, selector};
use crate::dialect::{Keep, Watch};
use crate::pods::node_of;
use crate::snapshot::Snapshot;
use crate::world::World;

pub(super) const WATCHES: &[Watch] = &[
    Watch { kind: SERVICE, keep: Keep::Whole },
    Watch {
        kind: POD,
        keep: Keep::Fields(&[
            "spec.nodeName",
            "spec.hostname",
            "spec.subdomain",
            "spec.containers",
            "spec.initContainers",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.conditions",
        ]),
    },
    Watch { kind: ENDPOINTS, keep: Keep::Whole },
    Watch { kind: ENDPOINT_SLICE, keep: Keep::Whole },
    // The zone is a label. A node that moves is found when its pods change.
    Watch { kind: NODE, keep: Keep::Fields(&[]) },
];

fn selects(service: &Object, pod: &Object) -> bool {
    selector(service).is_some_and(|labels| {
        labels.iter().all(|(key, value)| pod.label(key).is_some_and(|label| value == label))
    })
}

/// Whether an object are Endpoints that this controller wrote or mirrored for a Service that is
/// gone. Endpoints that never had one are left alone.
pub(super) fn is_left(world: &World, object: &Object) -> bool {
    *object.kind() == ENDPOINTS
        && !object.is_deleting()
        && object.annotation(LEADER).is_none()
        && world.find(&SERVICE, object.namespace(), object.name()).is_none()
        && (object.label(MANAGED_BY) == Some(CONTROLLER)
            || slices_of(world, object).any(|slice| is_mirrored(slice, object)))
}

fn is_mirrored(slice: &Object, endpoints: &Object) -> bool {
    slice.label(SLICE_MANAGED_BY) == Some(MIRROR_CONTROLLER)
        && slice.owners().any(|owner| Some(owner.uid) == endpoints.uid())
}

/// The slices of a Service, or of the Service that Endpoints are for.
fn slices_of<'w>(world: &'w World, object: &Object) -> impl Iterator<Item = &'w Object> {
    let name = object.name().clone();
    let slices = world.in_namespace(&ENDPOINT_SLICE, object.namespace());
    slices.filter(move |slice| slice.label(SERVICE_NAME) == Some(name.as_str()))
}

/// The rollouts that a change concerns.
pub(super) fn affected(world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
    let of_name = |name: &str| {
        let kinds = [SERVICE, ENDPOINTS];
        let keys = kinds.map(|kind| changed.sibling(&kind, &changed.namespace, name));
        let is_rollout = |key: &ObjectKey| {
            world.get(key).is_some_and(|it| *it.kind() == SERVICE || is_left(world, it))
        };
        keys.into_iter().filter(is_rollout).collect()
    };
    if changed.kind == SERVICE || changed.kind == ENDPOINTS {
        return of_name(&changed.name);
    }
    let Some(object) = world.get(changed) else { return Vec::new() };
    if changed.kind == ENDPOINT_SLICE {
        return object.label(SERVICE_NAME).map(of_name).unwrap_or_default();
    }
    if changed.kind == POD {
        let services = world.in_namespace(&SERVICE, &changed.namespace);
        let selecting = services.filter(|service| selects(service, object));
        return selecting.map(|service| service.key().clone()).collect();
    }
    Vec::new()
}

/// No Service where the change of a pod is not about where it is reached.
pub(super) fn affected_by(before: &Object, after: &Object) -> Option<Vec<ObjectKey>> {
    let is_same = *after.kind() == POD && is_reached_alike(before, after);
    is_same.then(Vec::new)
}

pub(super) fn snapshot<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    if *rollout.kind() == ENDPOINTS {
        return Snapshot::new(rollout, []);
    }
    let all = world.in_namespace(&POD, rollout.namespace());
    let pods: Vec<&Object> = all.filter(|pod| selects(rollout, pod)).collect();
    let nodes = pods.iter().filter_map(|pod| world.find(&NODE, "", node_of(pod)?));
    let endpoints = world.find(&ENDPOINTS, rollout.namespace(), rollout.name());
    let beside = nodes.collect::<Vec<_>>().into_iter().chain(endpoints);
    Snapshot::new(rollout, pods.into_iter().chain(beside).chain(slices_of(world, rollout)))
}
