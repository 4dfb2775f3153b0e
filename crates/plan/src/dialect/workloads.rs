//! What else keeps pods: DaemonSets, StatefulSets and Jobs. They are for homes without a
//! kube-controller-manager, so each does what rollouts and their members need of it.
//!
//! A rollout is one of these objects and its members are pods. [`kept`] says which pods are whose
//! and makes new ones, [`history`] keeps the revisions that `kubectl rollout` shows.

mod daemon_set;
mod history;
mod job;
mod kept;
mod outcome;
mod stateful_set;

use convoy_api::apps::POD;
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use super::{Dialect, Keep, Watch};
use crate::diagnostic::Diagnostic;
use crate::ownership::{controllers_of as keepers, in_reach as kept};
use crate::snapshot::Snapshot;
use crate::step::Step;
use crate::world::World;

pub(crate) const DAEMON_SET: GroupKind = GroupKind::new("apps", "DaemonSet");
pub(crate) const STATEFUL_SET: GroupKind = GroupKind::new("apps", "StatefulSet");
pub(crate) const JOB: GroupKind = GroupKind::new("batch", "Job");
const REVISION: GroupKind = GroupKind::new("apps", "ControllerRevision");
const CLAIM: GroupKind = GroupKind::new("", "PersistentVolumeClaim");
const NODE: GroupKind = GroupKind::new("", "Node");

const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.affinity",
    "status.phase",
    "status.conditions",
    "status.containerStatuses",
];
const PODS: Watch = Watch { kind: POD, keep: Keep::Fields(POD_FIELDS) };
const REVISIONS: Watch = Watch { kind: REVISION, keep: Keep::Whole };

/// One kind of these objects.
#[derive(Clone, Debug)]
pub struct Workloads {
    name: &'static str,
    kind: GroupKind,
    watches: &'static [Watch],
    step: fn(&Snapshot<'_>, Timestamp) -> Step,
}

/// Every DaemonSet.
pub static DAEMON_SETS: Workloads = Workloads {
    name: "daemonsets",
    kind: DAEMON_SET,
    watches: &[
        Watch { kind: DAEMON_SET, keep: Keep::Whole },
        PODS,
        REVISIONS,
        Watch { kind: NODE, keep: Keep::Fields(&["spec.taints", "spec.unschedulable"]) },
    ],
    step: daemon_set::step,
};

/// Every StatefulSet.
pub static STATEFUL_SETS: Workloads = Workloads {
    name: "statefulsets",
    kind: STATEFUL_SET,
    watches: &[
        Watch { kind: STATEFUL_SET, keep: Keep::Whole },
        PODS,
        REVISIONS,
        Watch { kind: CLAIM, keep: Keep::Fields(&[]) },
    ],
    step: stateful_set::step,
};

/// Every Job.
pub static JOBS: Workloads = Workloads {
    name: "jobs",
    kind: JOB,
    watches: &[Watch { kind: JOB, keep: Keep::Whole }, PODS],
    step: job::step,
};

impl Dialect for Workloads {
    fn name(&self) -> &'static str {
        self.name
    }

    fn watches(&self) -> &'static [Watch] {
        self.watches
    }

    /// The API server has checked them; a selector that cannot be read stops its own step.
    fn validates(&self, _kind: &GroupKind) -> bool {
        false
    }

    fn validate(&self, _world: &World, _object: &Object) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn validates_alone(&self) -> bool {
        true
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&self.kind).collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.kind() == self.kind
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        if changed.kind == self.kind {
            return vec![changed.clone()];
        }
        if changed.kind == NODE && self.kind == DAEMON_SET {
            return world.of(&self.kind).map(|object| object.key().clone()).collect();
        }
        if changed.kind == CLAIM && self.kind == STATEFUL_SET {
            let sets = world.in_namespace(&self.kind, &changed.namespace);
            return sets.map(|object| object.key().clone()).collect();
        }
        let kept = [POD, REVISION].contains(&changed.kind);
        let object = world.get(changed).filter(|_| kept);
        object.map_or_else(Vec::new, |object| keepers(world, &self.kind, object))
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        let beside = self.watches.iter().filter(|watch| watch.kind != self.kind);
        let objects = beside.flat_map(|watch| -> Box<dyn Iterator<Item = &'w Object> + 'w> {
            if watch.kind == NODE {
                Box::new(world.of(&NODE))
            } else if watch.kind == CLAIM {
                Box::new(world.in_namespace(&CLAIM, rollout.namespace()))
            } else {
                Box::new(kept(world, &watch.kind, rollout))
            }
        });
        Snapshot::new(rollout, objects)
    }

    fn hangs_on(&self, _world: &World, _rollout: &Object, _refused: &Object) -> bool {
        false
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        Step { dialect: self.name, ..(self.step)(snapshot, now) }
    }
}
