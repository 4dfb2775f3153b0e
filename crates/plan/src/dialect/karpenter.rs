//! Karpenter: node claims disrupted by reason, within budgets and windows.
//!
//! A rollout is a NodePool and its members are NodeClaims. [`decide`] finds the disruptions that
//! start now, [`write`] turns them into actions, beside the disruptions that are under way and
//! the nodes that are being terminated, and [`report`] gives a reason to all other members.

mod admission;
mod decide;
mod names;
mod read;
mod report;
mod status;
#[cfg(test)]
mod tests;
mod validate;
mod watch;
mod write;

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use super::{Dialect, NamedKind, Watch};
use crate::diagnostic::Diagnostic;
use crate::intervention::{Intervention, Refused};
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::{Action, Step, Verdict};
use crate::validation;
use crate::webhook::Conversion;
use crate::world::World;
use decide::Disruptions;
use decide::registrations::Registrations;
use read::class::NodeClassState;
pub use read::gates::Gates;
use read::{Cluster, Facts};

/// The `karpenter` dialect of plans.
#[derive(Clone, Copy, Debug)]
pub struct Karpenter;

/// The controller: beside the pools of a plan its rollouts are NodeClaims, whose machines it
/// launches and gives back, and the Nodes without a claim that wait for their end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operator {
    pub gates: Gates,
}

impl Operator {
    pub const fn new() -> Self {
        Self { gates: Gates::new() }
    }
}

impl Dialect for Karpenter {
    fn name(&self) -> &'static str {
        "karpenter"
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        [names::NODE_POOL, names::NODE_CLAIM, names::KWOK_NODE_CLASS].contains(kind)
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        if validate::is_older_claim(object) {
            return Vec::new();
        }
        validation::schema_and(object, |readable| {
            if *object.kind() == names::NODE_POOL { validate::pool(readable) } else { Vec::new() }
        })
    }

    /// What is wrong with an object follows from itself. Were it otherwise, each change of a claim
    /// would validate the thousands of others.
    fn validates_beside(&self, _kind: &GroupKind, _other: &GroupKind) -> bool {
        false
    }

    /// Of the metadata of claims only their names, which stay as they are. Labels, annotations
    /// and finalizers of thousands of them change in every disruption.
    fn validates_metadata(&self, kind: &GroupKind) -> bool {
        *kind != names::NODE_CLAIM
    }

    fn rollout_kinds(&self) -> &'static [NamedKind] {
        watch::ROLLOUT_KINDS
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&names::NODE_POOL).collect()
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout)
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        watch::depends_on(rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        step_of_pool(snapshot, Gates::new(), now)
    }

    fn conversions(&self) -> &'static [Conversion] {
        admission::CONVERSIONS
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, String> {
        admission::convert(object, to)
    }

    fn member_names(&self, world: &World, name: &str) -> Vec<SmolStr> {
        watch::member_names(world, name)
    }

    fn intervene(
        &self,
        _world: &World,
        rollout: &Object,
        intervention: &Intervention,
        _now: Timestamp,
    ) -> Result<Vec<Action>, Refused> {
        write::intervention::intervene(rollout, intervention)
    }
}

/// What happens next in one pool.
fn step_of_pool(snapshot: &Snapshot<'_>, gates: Gates, now: Timestamp) -> Step {
    let facts = Facts::read(snapshot);
    let cluster = Cluster::new(snapshot, &facts, gates, now);
    let disruptions = Disruptions::new(&cluster, snapshot.of(&names::DAEMON_SET));
    let mut step = Step::new(Karpenter.name(), snapshot.rollout(), Verdict::Done);
    step.decision = report::summary::decision(&cluster, &disruptions);
    let registrations = Registrations::read(&cluster, snapshot);
    let node_class = NodeClassState::read(cluster.pool(), snapshot);
    let writes = write::step(&cluster, snapshot, &disruptions, &registrations);
    report::report(&cluster, &disruptions, node_class, writes, &mut step);
    let capacity = status::capacity(cluster.own_members().map(|(_, member)| member));
    step.series = report::series::series(&cluster, &disruptions, &capacity);
    step.status = status::status(&cluster, node_class, &capacity, &disruptions, &registrations);
    // Every node and pod of the cluster is looked at.
    step.resting(snapshot.iter().count())
}

impl Dialect for Operator {
    fn name(&self) -> &'static str {
        Karpenter.name()
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn rollout_kinds(&self) -> &'static [NamedKind] {
        watch::ROLLOUT_KINDS
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        Karpenter.validates(kind)
    }

    fn validate(&self, world: &World, object: &Object) -> Vec<Diagnostic> {
        Karpenter.validate(world, object)
    }

    fn validates_beside(&self, kind: &GroupKind, other: &GroupKind) -> bool {
        Karpenter.validates_beside(kind, other)
    }

    fn validates_metadata(&self, kind: &GroupKind) -> bool {
        Karpenter.validates_metadata(kind)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        let alone = world.of(&names::NODE).filter(|node| watch::is_alone(world, node));
        alone.chain(world.of(&names::NODE_CLAIM)).chain(world.of(&names::NODE_POOL)).collect()
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        [names::NODE_POOL, names::NODE_CLAIM].contains(object.kind())
            || *object.kind() == names::NODE && watch::is_alone(world, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        let mut affected = watch::affected_claims(world, changed);
        affected.extend(watch::affected_nodes(world, changed));
        affected.extend(watch::affected(world, changed));
        affected
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        if *rollout.kind() == names::NODE_CLAIM {
            return watch::claim_snapshot(world, rollout);
        }
        if *rollout.kind() == names::NODE {
            return watch::node_snapshot(world, rollout);
        }
        watch::snapshot(world, rollout)
    }

    fn hangs_on(&self, _world: &World, rollout: &Object, refused: &Object) -> bool {
        *rollout.kind() == names::NODE_POOL && watch::depends_on(rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if *rollout.kind() == names::NODE {
            let facts = Facts::read(snapshot);
            return report::claim::end_of_node(self.name(), snapshot, &facts, now);
        }
        if *rollout.kind() != names::NODE_CLAIM {
            return step_of_pool(snapshot, self.gates, now);
        }
        if watch::has_pool(snapshot, rollout) {
            // Its end is part of the pool's step.
            return if rollout.is_deleting() {
                Step::new(self.name(), rollout, Verdict::Done)
            } else {
                report::claim::step(self.name(), snapshot, now)
            };
        }
        let facts = Facts::read(snapshot);
        if rollout.is_deleting() {
            report::claim::end(self.name(), snapshot, &facts, now)
        } else {
            report::claim::step_alone(self.name(), snapshot, &facts, now)
        }
    }

    fn conversions(&self) -> &'static [Conversion] {
        Karpenter.conversions()
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, String> {
        Karpenter.convert(object, to)
    }
}
