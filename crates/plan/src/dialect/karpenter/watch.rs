//! The kinds that the dialect reads, and which pools a change concerns.

use convoy_api::{Object, ObjectKey};

use super::names::{self, DAEMON_SET, NODE, POD, POD_DISRUPTION_BUDGET, VOLUME_ATTACHMENT};
use super::read::pool;
use crate::dialect::{Keep, Watch};
use crate::snapshot::Snapshot;
use crate::world::World;

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

/// Everything of the pool's cluster.
pub(crate) fn snapshot<'w>(world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
    let cluster = &rollout.key().cluster;
    let objects = WATCHES.iter().flat_map(|watch| world.of_cluster(cluster, &watch.kind));
    Snapshot::new(rollout, objects).remembering(world.memory())
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
