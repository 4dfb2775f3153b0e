//! The member agent of KubeFleet: applies the Works of one member to it, reports about them, and
//! keeps up the membership.
//!
//! Rollouts are the Works in the member's namespace on the hub and its `InternalMemberCluster`, in
//! the home cluster; the objects of the manifests are in the cluster that is named as the member.
//! It is no dialect of plans: a bag of objects has one cluster.

mod decide;
pub mod names;
pub(crate) mod read;
mod report;
mod status;
mod watch;
mod write;

use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;
use smol_str::SmolStr;

use self::decide::work::WorkPhase;
use self::names::{DIALECT, INTERNAL_MEMBER_CLUSTER, WORK};
pub use self::read::provider::PropertyProvider;
pub use self::read::timings::{AgentTimings, Requeue};
use super::{Dialect, Need, Watch};
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::{Complaint, Denial, Step};
use crate::world::World;

/// The agent of one member.
#[derive(Clone, Debug)]
pub struct FleetAgent {
    member: SmolStr,
    timings: AgentTimings,
    provider: Option<PropertyProvider>,
}

impl FleetAgent {
    /// The agent of the member cluster that goes by this name.
    pub fn new(member: impl Into<SmolStr>) -> Self {
        Self { member: member.into(), timings: AgentTimings::new(), provider: None }
    }

    /// The same with other waits.
    #[must_use]
    pub fn with(self, timings: AgentTimings) -> Self {
        Self { timings, ..self }
    }

    /// The same with a property provider.
    #[must_use]
    pub fn providing(self, provider: Option<PropertyProvider>) -> Self {
        Self { provider, ..self }
    }

    fn collects_namespaces(&self) -> bool {
        self.provider.as_ref().is_some_and(|provider| provider.collects_namespaces)
    }
}

impl Dialect for FleetAgent {
    fn name(&self) -> &'static str {
        DIALECT
    }

    fn field_manager(&self) -> &'static str {
        names::FIELD_MANAGER
    }

    fn watches(&self) -> &'static [Watch] {
        &watch::WATCHES
    }

    fn member_watches(&self) -> &'static [Watch] {
        &watch::MEMBER_WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn member_permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::MEMBER_PERMISSIONS)
    }

    fn version(&self, kind: &GroupKind) -> &'static str {
        super::fleet::names::version(kind)
    }

    /// The member, and the kinds of the objects that a Work is about.
    fn needs(&self, world: &World, rollout: &Object) -> Vec<Need> {
        watch::needs(world, rollout, &self.member, self.collects_namespaces())
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        watch::rollouts(world, &self.member)
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        watch::is_rollout(object, &self.member)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed, &self.member)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout, &self.member)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if *rollout.kind() != INTERNAL_MEMBER_CLUSTER {
            return self.work_step(snapshot, now);
        }
        let provider = self.provider.as_ref();
        let membership = decide::membership::decide(snapshot, &self.member, provider, now);
        let mut step = report::membership(rollout, &membership, now);
        step.status = status::membership::status(rollout, &membership, provider, now);
        step
    }

    /// A denied write is the status of its manifest, so that the next step goes on with the others.
    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        let work = snapshot.rollout();
        let mut complaint = Complaint::about(work, denial);
        if denial.target.cluster != self.member || *work.kind() != WORK {
            return complaint;
        }
        let phase = decide::work::decide(snapshot, &self.member, self.timings, now);
        if let WorkPhase::Applying(application) = phase {
            complaint.status = status::work::denied(work, &application, denial, now);
        }
        complaint
    }
}

impl FleetAgent {
    fn work_step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let work = snapshot.rollout();
        let phase = decide::work::decide(snapshot, &self.member, self.timings, now);
        let actions = match &phase {
            WorkPhase::NotJoined | WorkPhase::AwaitingOld => Vec::new(),
            WorkPhase::Released => write::released(work),
            WorkPhase::Deleting(deletion) => write::deleted(work, deletion),
            WorkPhase::Owning => write::owning(work, &self.member, now),
            WorkPhase::Applying(application) => {
                let mut actions = write::applied(work, application, &self.member, now);
                if !application.is_pending() {
                    actions.extend(status::applied_work::recorded(application));
                }
                actions
            }
        };
        let mut step = report::work(work, &phase, actions);
        if let WorkPhase::Applying(application) = &phase
            && !application.is_pending()
        {
            step.status = status::work::status(work, application, now);
            step.counts = report::counts::of_status(step.status.as_ref().unwrap_or(work.status()));
        }
        step
    }
}
