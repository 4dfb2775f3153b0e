//! The work agent of Open Cluster Management: applies the ManifestWorks of one managed cluster to
//! it, and reports about them.
//!
//! Rollouts are the ManifestWorks in the cluster's namespace on the hub, in the home cluster, and
//! this agent's `AppliedManifestWorks`, in the cluster that goes by the managed cluster's name. The
//! objects of the manifests are there too. It is no dialect of plans: a bag of objects has one
//! cluster.

mod decide;
pub mod names;
mod read;
mod report;
mod status;
mod watch;
mod write;

use std::fmt::Write as _;

use convoy_api::ocm::names::MANIFEST_WORK;
use convoy_api::{Object, ObjectKey};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use smol_str::SmolStr;

use self::decide::work::WorkPhase;
use self::names::{DIALECT, WORK_AGENT};
use super::{Dialect, Need, Watch};
use crate::permission::Permission;
use crate::snapshot::Snapshot;
use crate::step::{Complaint, Denial, Step};
use crate::world::World;

/// The agent of one managed cluster.
#[derive(Clone, Debug)]
pub struct OcmAgent {
    options: Options,
}

/// What an agent is told when it starts. The names of its flags are upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The name of the managed cluster, and of its namespace on the hub.
    pub cluster: SmolStr,
    /// Which hub the works come from: see [`hub_hash`].
    pub hub_hash: SmolStr,
    /// Whose `AppliedManifestWorks` are this agent's; upstream's default is the hash of the hub.
    pub agent_id: SmolStr,
    /// Feedback that is polled is reported no more often than this.
    pub status_sync_interval: SignedDuration,
    /// How long the objects of a work stay that is missing on the hub.
    pub eviction_grace_period: SignedDuration,
    /// The most bytes of JSON that one feedback value has.
    pub max_json_raw_length: usize,
    pub features: Features,
}

/// Feature gates of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Feedback may be a list or an object, as JSON.
    pub raw_feedback_json_string: bool,
}

/// From here on a grace period means: never.
const EVICTION_NEVER: SignedDuration = SignedDuration::from_hours(100 * 365 * 24);

impl Options {
    /// Upstream's defaults. `hub_server` is the server of the hub's kubeconfig, as it stands there.
    pub fn new(cluster: impl Into<SmolStr>, hub_server: &str) -> Self {
        let hub_hash = SmolStr::new(hub_hash(hub_server));
        Self {
            cluster: cluster.into(),
            agent_id: hub_hash.clone(),
            hub_hash,
            status_sync_interval: SignedDuration::from_secs(10),
            eviction_grace_period: SignedDuration::from_mins(60),
            max_json_raw_length: 1024,
            features: Features::default(),
        }
    }

    /// None: nothing is ever evicted.
    pub(crate) fn eviction_grace(&self) -> Option<SignedDuration> {
        Some(self.eviction_grace_period).filter(|period| *period < EVICTION_NEVER)
    }

    /// The name of the `AppliedManifestWork` of a work.
    pub(crate) fn applied_name(&self, work: &str) -> String {
        format!("{}-{work}", self.hub_hash)
    }
}

impl Features {
    /// Switches a feature by the name that upstream gives it; false if there is none of this name.
    pub fn set(&mut self, name: &str, is_on: bool) -> bool {
        match name {
            "RawFeedbackJsonString" => self.raw_feedback_json_string = is_on,
            // Rights of executors are decided from watched roles, whether or not this is on.
            "ExecutorValidatingCaches" => {}
            _ => return false,
        }
        true
    }
}

/// SHA-256 of the address of a hub, as hex. A path is part of the address, a query and a fragment
/// are not.
pub fn hub_hash(server: &str) -> String {
    let server = server.split(['?', '#']).next().unwrap_or_default();
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(server.as_bytes()) {
        write!(hex, "{byte:02x}").expect("a String takes whatever is written");
    }
    hex
}

impl OcmAgent {
    pub fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Dialect for OcmAgent {
    fn name(&self) -> &'static str {
        DIALECT
    }

    fn field_manager(&self) -> &'static str {
        WORK_AGENT
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

    /// Works may have left the hub while nobody looked.
    fn standing_needs(&self) -> Vec<Need> {
        vec![Need::Member { cluster: self.options.cluster.clone() }]
    }

    /// The member, and the kinds of the objects that a work is about.
    fn needs(&self, world: &World, rollout: &Object) -> Vec<Need> {
        watch::needs(world, rollout, &self.options)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        watch::rollouts(world, &self.options)
    }

    fn is_rollout(&self, _world: &World, object: &Object) -> bool {
        watch::is_rollout(object, &self.options)
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected::affected(world, changed, &self.options)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout, &self.options)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let rollout = snapshot.rollout();
        if *rollout.kind() == MANIFEST_WORK {
            return self.work_step(snapshot, now);
        }
        let phase = decide::applied_work::decide(snapshot, &self.options, now);
        let actions = write::applied_work::actions(rollout, &phase);
        let mut step = report::applied_work(rollout, &phase, actions);
        step.status = status::applied_work::status(rollout, &phase, now);
        step
    }

    /// A denied write is the status of its manifest, so that the next step goes on with the others.
    fn complaint(&self, snapshot: &Snapshot<'_>, denial: &Denial, now: Timestamp) -> Complaint {
        let work = snapshot.rollout();
        let mut complaint = Complaint::about(work, denial);
        if denial.target.cluster != self.options.cluster || *work.kind() != MANIFEST_WORK {
            return complaint;
        }
        if let WorkPhase::Applying(application) = decide::work::decide(snapshot, &self.options) {
            let denied = application.denied(denial, &self.options.cluster);
            complaint.status = status::work::status(work, &denied, &self.options, now).status;
        }
        complaint
    }
}

impl OcmAgent {
    fn work_step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        let work = snapshot.rollout();
        let phase = decide::work::decide(snapshot, &self.options);
        let actions = match &phase {
            WorkPhase::AwaitingOld => Vec::new(),
            WorkPhase::Owning => write::owning(work, &self.options),
            WorkPhase::Deleting(deletion) => write::deleted(work, *deletion, now),
            WorkPhase::Applying(application) => {
                write::applied(work, application, &self.options, now)
            }
        };
        let mut step = report::work(work, &phase, actions);
        if let WorkPhase::Applying(application) = &phase
            && !application.is_pending()
        {
            let told = status::work::status(work, application, &self.options, now);
            step.status = told.status;
            step.wake_at = told.wake_at;
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_known_by_the_address_as_it_is_written() {
        assert_ne!(hub_hash("https://hub:6443"), hub_hash("https://hub:6443/"));
        assert_eq!(hub_hash("https://hub:6443"), hub_hash("https://hub:6443?x=1#y"));
        assert_eq!(
            hub_hash(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn a_hundred_years_of_grace_are_for_ever() {
        let mut options = Options::new("eu", "https://hub");
        assert_eq!(options.eviction_grace(), Some(SignedDuration::from_mins(60)));
        options.eviction_grace_period = EVICTION_NEVER;
        assert_eq!(options.eviction_grace(), None);
        assert!(options.features.set("RawFeedbackJsonString", true));
        assert!(!options.features.set("NoSuchFeature", true));
    }
}
