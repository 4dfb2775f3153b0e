//! DaemonSets, StatefulSets, Jobs, CronJobs and PodDisruptionBudgets, for clusters without a
//! kube-controller-manager: each does what rollouts and their members need of it.
//!
//! A rollout is one of these objects, and its members are pods; those of a CronJob are Jobs.

mod decide;
mod names;
mod read;
mod report;
mod status;
mod watch;
mod write;

use convoy_api::kinds::{CRON_JOB, DAEMON_SET, JOB, POD, POD_DISRUPTION_BUDGET, STATEFUL_SET};
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

use self::read::Unreadable;
use super::{Dialect, Need, Watch};
use crate::snapshot::Snapshot;
use crate::step::{Complaint, Denial, Step};
use crate::world::World;

/// The controller of one of the kinds.
#[derive(Clone, Debug)]
pub struct Workloads {
    name: &'static str,
    kind: GroupKind,
    watches: &'static [Watch],
    step: fn(&'static str, &Snapshot<'_>, Timestamp) -> Result<Step, Unreadable>,
}

/// The controller of DaemonSets.
pub static DAEMON_SETS: Workloads = Workloads {
    name: "daemonsets",
    kind: DAEMON_SET,
    watches: watch::OF_DAEMON_SETS,
    step: report::daemon_set::step,
};

/// The controller of StatefulSets.
pub static STATEFUL_SETS: Workloads = Workloads {
    name: "statefulsets",
    kind: STATEFUL_SET,
    watches: watch::OF_STATEFUL_SETS,
    step: report::stateful_set::step,
};

/// The controller of Jobs.
pub static JOBS: Workloads =
    Workloads { name: "jobs", kind: JOB, watches: watch::OF_JOBS, step: report::job::step };

/// The controller of CronJobs.
pub static CRON_JOBS: Workloads = Workloads {
    name: "cronjobs",
    kind: CRON_JOB,
    watches: watch::OF_CRON_JOBS,
    step: report::cron_job::step,
};

/// The controller of PodDisruptionBudgets: how many of the pods that a budget protects are healthy,
/// how many have to be, and so how many may be evicted. Nothing moves: the decision is the status,
/// which the server's eviction counts down and this controller brings up to date.
#[derive(Clone, Copy, Debug)]
pub struct PodDisruptionBudgets;

impl Dialect for PodDisruptionBudgets {
    fn name(&self) -> &'static str {
        "poddisruptionbudgets"
    }

    fn watches(&self) -> &'static [Watch] {
        watch::budget::WATCHES
    }

    fn needs(&self, world: &World, rollout: &Object) -> Vec<Need> {
        watch::budget::needs(world, rollout)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&POD_DISRUPTION_BUDGET).collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.kind() == POD_DISRUPTION_BUDGET
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::budget::affected(world, changed)
    }

    fn affected_by(
        &self,
        _world: &World,
        before: &Object,
        after: &Object,
        _decided_at: Timestamp,
    ) -> Option<Vec<ObjectKey>> {
        watch::budget::affected_by(before, after)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::budget::snapshot(world, rollout)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let decision = read::budget::Budget::read(snapshot).and_then(|budget| {
            let count = decide::budget::decide(snapshot, &budget, now)?;
            Ok((budget, count))
        });
        let step = report::budget::step(self.name(), snapshot.rollout(), decision, now);
        step.resting_if_many(snapshot.iter().count())
    }
}

impl Dialect for Workloads {
    fn name(&self) -> &'static str {
        self.name
    }

    fn watches(&self) -> &'static [Watch] {
        self.watches
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        watch::rollouts(world, &self.kind)
    }

    fn is_rollout(&self, world: &World, object: &Object) -> bool {
        watch::is_rollout(world, &self.kind, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, &self.kind, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, self.watches, rollout)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if *rollout.kind() == POD {
            return report::orphan::step(self.name, rollout);
        }
        let step = (self.step)(self.name, snapshot, now);
        step.unwrap_or_else(|Unreadable { field }| Step::invalid(self.name, rollout, vec![field]))
    }

    /// A denied write ends a step before its status is written. No status depends on pods that are
    /// created, so that pods are counted though no more may be created.
    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        let mut complaint = Complaint::about(snapshot.rollout(), denial);
        if denial.verb == "create" && denial.target.kind == POD {
            complaint.status = self.step(snapshot, now).status;
        }
        complaint
    }
}

#[cfg(test)]
mod tests;
