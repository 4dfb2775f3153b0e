//! The kinds that are read on the hub and on the member.

use convoy_api::kinds::{LEASE, NODE};
use convoy_api::ocm::names::{CLUSTER_CLAIM, MANAGED_CLUSTER};
use convoy_api::{Object, ObjectKey};

use super::names::CLUSTER_LEASE;
use crate::dialect::{Keep, Watch};
use crate::snapshot::Snapshot;
use crate::world::World;

/// On the hub.
pub(super) static WATCHES: [Watch; 2] = [
    Watch { kind: MANAGED_CLUSTER, keep: Keep::Fields(&["spec", "status"]) },
    Watch { kind: LEASE, keep: Keep::Fields(&["spec.renewTime"]) },
];

/// On the member.
pub(super) static MEMBER_WATCHES: [Watch; 2] = [
    Watch {
        kind: NODE,
        keep: Keep::Fields(&["spec.unschedulable", "status.capacity", "status.allocatable"]),
    },
    Watch { kind: CLUSTER_CLAIM, keep: Keep::Fields(&["spec.value"]) },
];

/// The managed cluster of the agent.
pub(super) fn own_cluster(cluster: &str) -> ObjectKey {
    MANAGED_CLUSTER.key("", cluster)
}

pub(super) fn affected(world: &World, changed: &ObjectKey, cluster: &str) -> Vec<ObjectKey> {
    let own = own_cluster(cluster);
    let concerns = if changed.cluster.is_empty() {
        *changed == own || *changed == LEASE.key(cluster, CLUSTER_LEASE)
    } else {
        changed.cluster == cluster && [NODE, CLUSTER_CLAIM].contains(&changed.kind)
    };
    [own].into_iter().filter(|own| concerns && world.get(own).is_some()).collect()
}

pub(super) fn snapshot<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    let cluster = rollout.name();
    let lease = world.find(&LEASE, cluster, CLUSTER_LEASE).into_iter();
    let nodes = world.of_cluster(cluster, &NODE);
    let claims = world.of_cluster(cluster, &CLUSTER_CLAIM);
    Snapshot::new(rollout, lease.chain(nodes).chain(claims))
}
