//! Karpenter: node claims disrupted by reason, within budgets and windows.
//!
//! A rollout is a NodePool and its members are NodeClaims. [`run`] finds what would be started
//! now; [`act`] turns that into writes, beside the commands that are under way ([`command`])
//! and the nodes that are going ([`terminate`]); [`explain`] gives everyone else a reason.

mod act;
mod amount;
mod budget;
mod candidate;
mod catalogue;
mod cluster;
mod command;
mod consolidate;
mod decision;
mod draft;
mod explain;
mod hash;
mod launch;
mod mark;
mod member;
mod needs;
mod pod;
mod pool;
mod reason;
mod requirement;
mod run;
mod simulate;
mod statics;
mod status;
mod terminate;
#[cfg(test)]
mod tests;
mod topology;
mod validate;

use convoy_api::karpenter::names;
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use super::{Dialect, Keep, Watch};
use crate::diagnostic::Diagnostic;
use crate::snapshot::Snapshot;
use crate::step::{Step, Verdict};
use crate::validation;
use crate::world::World;
use cluster::{Cluster, NODE};
use pod::{POD, POD_BUDGET};

/// The `karpenter` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Karpenter;

const DAEMON_SET: GroupKind = GroupKind::new("apps", "DaemonSet");
const VOLUME_ATTACHMENT: GroupKind = GroupKind::new("storage.k8s.io", "VolumeAttachment");

const WATCHES: &[Watch] = &[
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
    Watch { kind: POD_BUDGET, keep: Keep::Fields(&["spec", "status.disruptionsAllowed"]) },
    Watch { kind: DAEMON_SET, keep: Keep::Fields(&["spec.template"]) },
    Watch { kind: VOLUME_ATTACHMENT, keep: Keep::Fields(&["spec"]) },
];

impl Dialect for Karpenter {
    fn name(&self) -> &'static str {
        "karpenter"
    }

    fn watches(&self) -> &'static [Watch] {
        WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        [names::NODE_POOL, names::NODE_CLAIM, names::KWOK_NODE_CLASS].contains(kind)
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        let mut found = validation::schema(object);
        if found.is_empty() && *object.kind() == names::NODE_POOL {
            found.extend(validate::pool(object));
        }
        found
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&names::NODE_POOL).collect()
    }

    /// Pods and nodes of one pool can make room for those of another.
    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        if changed.kind == names::NODE_POOL {
            return vec![changed.clone()];
        }
        if !WATCHES.iter().any(|watch| watch.kind == changed.kind) {
            return Vec::new();
        }
        world
            .of_cluster(&changed.cluster, &names::NODE_POOL)
            .map(|pool| pool.key().clone())
            .collect()
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        let cluster = &rollout.key().cluster;
        let objects = WATCHES.iter().flat_map(|watch| world.of_cluster(cluster, &watch.kind));
        Snapshot::new(rollout, objects)
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        if *refused.kind() == names::NODE_CLAIM {
            // One that does not name its pool may be anybody's.
            let pool = refused.label(names::label::NODE_POOL);
            return pool.is_none_or(|pool| pool == rollout.name());
        }
        let class = rollout.spec().pointer("/template/spec/nodeClassRef");
        let named = |field: &str| class.and_then(|class| class.get(field)?.as_str());
        *refused.kind() == names::KWOK_NODE_CLASS
            && named("kind").is_none_or(|kind| kind == refused.kind().kind)
            && named("name").is_none_or(|name| name == refused.name())
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let mut cluster = Cluster::new(snapshot, now);
        let daemons = snapshot.of(&DAEMON_SET);
        if !cluster.pending.is_empty() {
            cluster.nominated = simulate::nominated(&cluster, daemons);
        }
        let run = run::Run::new(&cluster, daemons);
        let mut step = Step::new(self.name(), snapshot.rollout(), Verdict::Done);
        step.decision = decision::decision(&cluster, &run);
        let mut acts = act::act(&cluster, snapshot, &run);
        statics::scale(&cluster, snapshot, &run, &mut acts);
        let reasons: Vec<_> = decision::reasons(&cluster).collect();
        act::blocked(&cluster, &run, &reasons, &mut acts);
        acts.record.extend(status::hashed(&cluster));
        explain::explain(&cluster, &run, acts, &mut step);
        step.status = status::status(&cluster, snapshot);
        step
    }
}
