//! Open Cluster Management: placements cut into decision groups, works rolled through them.
//!
//! A Placement and a `ManifestWorkReplicaSet` are each a rollout: the first decides which
//! clusters and in which groups, the second hands its template through those groups.

mod admission;
mod decide;
pub(crate) mod names;
mod read;
mod report;
mod status;
mod validate;
mod watch;
mod write;

use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;
use convoy_api::ocm::names::{
    MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING, MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET, PLACEMENT,
};
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;

pub use self::decide::{ReportedGroup, group_title, next_clusters};
use self::names::DIALECT;
pub use self::read::work_status::{DatedStatus, WorkStatus};
pub use self::write::rights::agent_roles;
use super::{Dialect, NamedKind, Watch};
use crate::diagnostic::Diagnostic;
use crate::intervention::{Intervention, Refused};
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::{Action, Step};
use crate::webhook::{NeededRight, Request, Verdict as Admitted, Webhook};
use crate::world::World;

/// The `ocm` dialect of plans.
#[derive(Clone, Copy, Debug)]
pub struct Ocm;

/// The controllers of a hub. Unlike a plan they look after managed clusters and cluster sets
/// too, and a replica set goes by the decisions that are written.
#[derive(Clone, Copy, Debug)]
pub struct Hub {
    pub parts: HubControllers,
}

/// Which controllers of a hub run: people run some of upstream's beside ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each part is on or off by itself")]
pub struct HubControllers {
    /// Placements and their decisions.
    pub placement: bool,
    /// Replica sets and their works, and works that go when they are through.
    pub work: bool,
    /// What clusters get on the hub, and whether they are available.
    pub registration: bool,
    /// Taints of clusters that are not available.
    pub taints: bool,
    /// What cluster sets and their bindings report.
    pub cluster_sets: bool,
    /// The sets `default` and `global` always exist.
    pub built_in_sets: bool,
    /// The webhooks.
    pub admission: bool,
}

impl Default for HubControllers {
    fn default() -> Self {
        Self::ALL
    }
}

impl HubControllers {
    pub const ALL: Self = Self {
        placement: true,
        work: true,
        registration: true,
        taints: true,
        cluster_sets: true,
        built_in_sets: true,
        admission: true,
    };

    pub const NONE: Self = Self {
        placement: false,
        work: false,
        registration: false,
        taints: false,
        cluster_sets: false,
        built_in_sets: false,
        admission: false,
    };
}

impl Dialect for Ocm {
    fn name(&self) -> &'static str {
        DIALECT
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        validate::KINDS.contains(kind)
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::validate(object)
    }

    /// A placement is misconfigured in its own words, and says for the first time that nothing is
    /// selected.
    fn reports_invalid(&self, kind: &GroupKind) -> bool {
        *kind == PLACEMENT
    }

    /// No object is judged beside others, of which there are thousands.
    fn validates_beside(&self, _kind: &GroupKind, _other: &GroupKind) -> bool {
        false
    }

    fn rollout_kinds(&self) -> &'static [NamedKind] {
        watch::ROLLOUT_KINDS
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&PLACEMENT).chain(world.of(&MANIFEST_WORK_REPLICA_SET)).collect()
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout)
    }

    fn hangs_on(&self, world: &World, rollout: &Object, refused: &Object) -> bool {
        watch::hangs_on(world, rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if *rollout.kind() == PLACEMENT {
            let decision = decide::placement::decide(snapshot, now);
            let actions = write::decision::actions(snapshot, &decision);
            let status = status::placement::status(rollout, &decision, now);
            report::placement::step(rollout, &decision, actions, status, now)
        } else {
            let decision = decide::replica_set::decide(snapshot, now);
            let actions = write::work::actions(rollout, &decision, now);
            let status = status::replica_set::status(rollout, &decision, now);
            report::replica_set::step(rollout, &decision, actions, status, now)
        }
    }

    fn has_member(&self, world: &World, rollout: &Object, name: &str) -> bool {
        watch::has_member(world, rollout, name)
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

    fn webhooks(&self) -> &'static [Webhook] {
        admission::WEBHOOKS
    }

    fn rights(&self, webhook: &Webhook, request: &Request<'_>) -> Vec<NeededRight> {
        admission::rights(webhook, request)
    }

    fn admit(&self, webhook: &Webhook, world: &World, request: &Request<'_>) -> Admitted {
        admission::admit(webhook, world, request)
    }
}

impl Dialect for Hub {
    fn name(&self) -> &'static str {
        DIALECT
    }

    fn watches(&self) -> &'static [Watch] {
        watch::hub::WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::permissions::PERMISSIONS)
    }

    fn rollout_kinds(&self) -> &'static [NamedKind] {
        watch::ROLLOUT_KINDS
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        Ocm.validates(kind)
    }

    fn validate(&self, world: &World, object: &Object) -> Vec<Diagnostic> {
        Ocm.validate(world, object)
    }

    fn reports_invalid(&self, kind: &GroupKind) -> bool {
        Ocm.reports_invalid(kind)
    }

    fn validates_beside(&self, kind: &GroupKind, other: &GroupKind) -> bool {
        Ocm.validates_beside(kind, other)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        watch::hub::rollouts(self.parts, world)
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        watch::hub::is_rollout(self.parts, object)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::hub::affected(self.parts, world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::hub::snapshot(world, rollout)
    }

    fn hangs_on(&self, world: &World, rollout: &Object, refused: &Object) -> bool {
        let is_decided = [PLACEMENT, MANIFEST_WORK_REPLICA_SET].contains(rollout.kind());
        is_decided && Ocm.hangs_on(world, rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        let kind = rollout.kind();
        if *kind == MANAGED_CLUSTER {
            let registration = decide::registration::decide(snapshot, self.parts, now);
            let actions = write::registration::actions(snapshot, &registration, now);
            let status = status::registration::cluster(rollout, &registration, now);
            report::registration::cluster(rollout, &registration, actions, status)
        } else if *kind == MANAGED_CLUSTER_SET {
            let restored =
                self.parts.built_in_sets.then(|| write::registration::set_restored(rollout));
            let actions = restored.flatten().into_iter().collect();
            let status = status::registration::set(snapshot, now);
            report::registration::simple(rollout, actions, status)
        } else if *kind == MANAGED_CLUSTER_SET_BINDING {
            let status = status::registration::binding(snapshot, now);
            report::registration::simple(rollout, Vec::new(), status)
        } else if *kind == MANIFEST_WORK {
            let completed = decide::completed::decide(rollout, now);
            let actions = write::completed::actions(rollout, completed);
            report::completed::work(rollout, completed, actions)
        } else if *kind == CUSTOM_RESOURCE_DEFINITION {
            let actions = write::registration::sets_created(snapshot);
            report::registration::simple(rollout, actions, None)
        } else {
            Ocm.step(snapshot, now)
        }
    }

    fn webhooks(&self) -> &'static [Webhook] {
        if self.parts.admission { Ocm.webhooks() } else { &[] }
    }

    fn rights(&self, webhook: &Webhook, request: &Request<'_>) -> Vec<NeededRight> {
        Ocm.rights(webhook, request)
    }

    fn admit(&self, webhook: &Webhook, world: &World, request: &Request<'_>) -> Admitted {
        Ocm.admit(webhook, world, request)
    }
}

#[cfg(test)]
mod tests;
