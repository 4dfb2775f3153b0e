//! The registration agent of Open Cluster Management: renews the Lease of one managed cluster, says
//! that it has joined and is available, and reports its resources, version and claims.
//!
//! The only rollout is the `ManagedCluster` on the hub, in the home cluster; nodes and claims are in
//! the cluster that goes by the same name. It is no dialect of plans: a bag of objects has one
//! cluster.

mod decide;
pub mod names;
mod read;
mod report;
mod status;
mod watch;
mod write;

use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use smol_str::SmolStr;

use self::names::{DIALECT, REGISTRATION_AGENT};
use super::{Dialect, Need, Watch};
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::Step;
use crate::world::World;

/// The registration agent of one managed cluster.
#[derive(Clone, Debug)]
pub struct OcmRegistration {
    options: Options,
}

/// What an agent is told when it starts. The names of its flags are upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The name of the managed cluster, and of its namespace on the hub.
    pub cluster: SmolStr,
    /// The version of its API server; empty if nobody knows.
    pub kubernetes_version: SmolStr,
    /// The most claims that are reported beside the reserved ones.
    pub max_custom_cluster_claims: usize,
    /// Claims whose names end like this are reserved too.
    pub reserved_cluster_claim_suffixes: Vec<String>,
}

impl Options {
    /// Upstream's defaults.
    pub fn new(cluster: impl Into<SmolStr>) -> Self {
        Self {
            cluster: cluster.into(),
            kubernetes_version: SmolStr::default(),
            max_custom_cluster_claims: 20,
            reserved_cluster_claim_suffixes: Vec::new(),
        }
    }
}

impl OcmRegistration {
    pub fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Dialect for OcmRegistration {
    fn name(&self) -> &'static str {
        DIALECT
    }

    fn field_manager(&self) -> &'static str {
        REGISTRATION_AGENT
    }

    fn watches(&self) -> &'static [Watch] {
        &watch::WATCHES
    }

    fn member_watches(&self) -> &'static [Watch] {
        &watch::MEMBER_WATCHES
    }

    fn permissions(&self) -> Option<&'static [Permission]> {
        Some(write::PERMISSIONS)
    }

    fn member_permissions(&self) -> Option<&'static [Permission]> {
        Some(&[])
    }

    fn needs(&self, _world: &World, _rollout: &Object) -> Vec<Need> {
        vec![Need::Member { cluster: self.options.cluster.clone() }]
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.get(&watch::own_cluster(&self.options.cluster)).into_iter().collect()
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        *object.key() == watch::own_cluster(&self.options.cluster)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed, &self.options.cluster)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let cluster = snapshot.rollout();
        let registration = decide::decide(snapshot, &self.options, now);
        let actions = write::actions(&registration, now);
        let status = status::status(cluster, &registration, now);
        report::step(cluster, &registration, actions, status)
    }
}
