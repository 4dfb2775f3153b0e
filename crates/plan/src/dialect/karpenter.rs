//! Karpenter: node claims disrupted by reason, within budgets and windows.
//!
//! A rollout is a NodePool and its members are NodeClaims. [`decide`] finds the disruptions that
//! start now, [`write`] turns them into actions, beside the disruptions that are under way and
//! the nodes that are being terminated, and [`report`] gives a reason to all other members.

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

use super::{Dialect, Watch};
use crate::diagnostic::Diagnostic;
use crate::snapshot::Snapshot;
use crate::step::{Step, Verdict};
use crate::validation;
use crate::world::World;
use decide::Disruptions;
use read::{Cluster, Facts};

/// The `karpenter` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Karpenter;

impl Dialect for Karpenter {
    fn name(&self) -> &'static str {
        "karpenter"
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
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
        let facts = Facts::read(snapshot);
        let cluster = Cluster::new(snapshot, &facts, now);
        let disruptions = Disruptions::new(&cluster, snapshot.of(&names::DAEMON_SET));
        let mut step = Step::new(self.name(), snapshot.rollout(), Verdict::Done);
        step.decision = report::summary::decision(&cluster, &disruptions);
        let writes = write::step(&cluster, snapshot, &disruptions);
        report::report(&cluster, &disruptions, writes, &mut step);
        step.status = status::status(&cluster, snapshot, &disruptions);
        step
    }
}
