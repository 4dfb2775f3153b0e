//! Which objects each controller watches, which rollouts a change concerns, and what a decision
//! looks at.

pub(crate) mod budget;

use convoy_api::kinds::{
    CONTROLLER_REVISION, CRON_JOB, DAEMON_SET, JOB, NODE, PERSISTENT_VOLUME_CLAIM, POD,
    STATEFUL_SET,
};
use convoy_api::{GroupKind, Object, ObjectKey};

use crate::dialect::workloads::read::orphan::{is_orphan, left_by};
use crate::dialect::{Keep, Watch};
use crate::ownership::{controllers_of, in_reach};
use crate::snapshot::Snapshot;
use crate::world::World;

const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.affinity",
    "status.phase",
    "status.conditions",
    "status.containerStatuses",
    "status.initContainerStatuses",
];
const PODS: Watch = Watch { kind: POD, keep: Keep::Fields(POD_FIELDS) };
const REVISIONS: Watch = Watch { kind: CONTROLLER_REVISION, keep: Keep::Whole };

pub(super) const OF_DAEMON_SETS: &[Watch] = &[
    Watch { kind: DAEMON_SET, keep: Keep::Whole },
    PODS,
    REVISIONS,
    Watch { kind: NODE, keep: Keep::Fields(&["spec.taints", "spec.unschedulable"]) },
];

pub(super) const OF_STATEFUL_SETS: &[Watch] = &[
    Watch { kind: STATEFUL_SET, keep: Keep::Whole },
    PODS,
    REVISIONS,
    Watch { kind: PERSISTENT_VOLUME_CLAIM, keep: Keep::Fields(&[]) },
];

pub(super) const OF_JOBS: &[Watch] = &[Watch { kind: JOB, keep: Keep::Whole }, PODS];

pub(super) const OF_CRON_JOBS: &[Watch] = &[
    Watch { kind: CRON_JOB, keep: Keep::Whole },
    Watch {
        kind: JOB,
        keep: Keep::Fields(&["status.conditions", "status.startTime", "status.completionTime"]),
    },
];

/// The rollouts of a kind; beside Jobs, the pods that Jobs left behind.
pub(super) fn rollouts<'w>(world: &'w World, kind: &GroupKind) -> Vec<&'w Object> {
    let pods = (*kind == JOB).then(|| world.of(&POD).filter(|pod| is_orphan(world, pod)));
    pods.into_iter().flatten().chain(world.of(kind)).collect()
}

pub(super) fn is_rollout(world: &World, kind: &GroupKind, object: &Object) -> bool {
    object.kind() == kind || *kind == JOB && is_orphan(world, object)
}

/// The rollouts of a kind that a change concerns.
pub(super) fn affected(world: &World, kind: &GroupKind, changed: &ObjectKey) -> Vec<ObjectKey> {
    if changed.kind == *kind {
        let left = (*kind == JOB).then(|| left_by(world, changed));
        return left.into_iter().flatten().chain([changed.clone()]).collect();
    }
    if changed.kind == NODE && *kind == DAEMON_SET {
        return world.of(kind).map(|object| object.key().clone()).collect();
    }
    if changed.kind == PERSISTENT_VOLUME_CLAIM && *kind == STATEFUL_SET {
        let sets = world.in_namespace(kind, &changed.namespace);
        return sets.map(|object| object.key().clone()).collect();
    }
    let owned: &[GroupKind] = if *kind == CRON_JOB { &[JOB] } else { &[POD, CONTROLLER_REVISION] };
    let is_owned = owned.contains(&changed.kind);
    let object = world.get(changed).filter(|_| is_owned);
    let Some(object) = object else { return Vec::new() };
    if is_rollout(world, kind, object) {
        return vec![changed.clone()];
    }
    controllers_of(world, kind, object)
}

/// What the decision about one rollout looks at.
pub(super) fn snapshot<'w>(
    world: &'w World,
    watches: &[Watch],
    rollout: &'w Object,
) -> Snapshot<'w> {
    if *rollout.kind() == POD {
        return Snapshot::new(rollout, []);
    }
    let beside = watches.iter().filter(|watch| watch.kind != *rollout.kind());
    let objects = beside.flat_map(|watch| -> Box<dyn Iterator<Item = &'w Object> + 'w> {
        if watch.kind == NODE {
            Box::new(world.of(&NODE))
        } else if watch.kind == PERSISTENT_VOLUME_CLAIM {
            Box::new(world.in_namespace(&PERSISTENT_VOLUME_CLAIM, rollout.namespace()))
        } else {
            Box::new(in_reach(world, &watch.kind, rollout))
        }
    });
    Snapshot::new(rollout, objects)
}
