//! A hub of Open Cluster Management and its managed clusters under trial: people who release, change
//! strategies, decision groups, selectors and cluster sets, label and taint clusters, take them out
//! of the hub and back, and edit what is not theirs; releases that never work, clusters that deny
//! writes or do not answer, and processes that end between any two writes. After every write nobody
//! is in flight who may not be, nobody has started out of turn, and no cluster has changed its
//! decision group.

mod end;
mod user;
pub(super) mod world;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use convoy_api::ocm::names::{MANAGED_CLUSTER, MANIFEST_WORK_REPLICA_SET, PLACEMENT};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::ReplicaSets;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::ocm::{Hub, HubControllers};
use convoy_plan::dialect::ocm_agent::{OcmAgent, Options};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use smol_str::SmolStr;

use self::world::{NAMESPACE, SET, cluster_name, template};
use super::cluster::{Cluster, WriteRecord};
use super::ending::Ending;
use super::fleets::world::workload;
use super::random::Random;
use super::trial::FaultPhases;
use super::{RunSettings, Trial};
use crate::seed::Seed;

static HUB: Hub = Hub { parts: HubControllers::ALL };

/// The agents of all clusters that a trial may have.
static AGENTS: LazyLock<Vec<OcmAgent>> = LazyLock::new(|| {
    let options = |number| Options::new(cluster_name(number), "https://hub:6443");
    (1..=world::CLUSTERS_MAX).map(|number| OcmAgent::new(options(number))).collect()
});

/// A replica set on a few managed clusters, and what befalls it.
pub struct OcmFleet {
    clusters: u32,
    hub: &'static dyn Dialect,
    /// What is written first.
    requests: Vec<Request>,
    seen: BTreeMap<ObjectKey, Object>,
    vigil: ReplicaSets,
    /// What the vigil found when the loops had settled.
    found: Option<String>,
    ending: Ending,
    /// The templates that were released so far.
    releases: u32,
    now: Timestamp,
    has_writes: bool,
}

impl OcmFleet {
    /// A trial and its settings, as a seed has it.
    pub fn from_seed(seed: u64) -> (Self, RunSettings) {
        let mut random = Random::new(Seed::new(seed).child("trial", "ocm"));
        let phases = FaultPhases { short: (8_000, 40_000), long: (60_000, 150_000), long_ones: 50 };
        let settings = RunSettings::disturbed(&mut random, phases);
        let most = i64::from(world::CLUSTERS_MAX);
        let clusters = u32::try_from(random.between(2, most)).unwrap_or(2);
        let trial = Self {
            clusters,
            hub: &HUB,
            requests: world::requests(clusters, &mut random),
            seen: BTreeMap::new(),
            vigil: ReplicaSets::default(),
            found: None,
            ending: Ending::random(&mut random),
            releases: 1,
            now: Timestamp::UNIX_EPOCH,
            has_writes: false,
        };
        (trial, settings)
    }

    /// The same with another controller of the hub.
    #[must_use]
    pub fn with_hub(self, hub: &'static dyn Dialect) -> Self {
        Self { hub, ..self }
    }

    fn of(&self, kind: GroupKind) -> impl Iterator<Item = &Object> {
        self.seen.values().filter(move |object| *object.kind() == kind)
    }

    fn placement(&self, name: &str) -> Option<&Object> {
        self.seen.get(&PLACEMENT.key(NAMESPACE, name))
    }

    fn set(&self) -> Option<&Object> {
        self.seen.get(&MANIFEST_WORK_REPLICA_SET.key(NAMESPACE, SET))
    }

    fn cluster(&self, name: &str) -> Option<&Object> {
        self.seen.get(&MANAGED_CLUSTER.key("", name))
    }

    /// The next template; some never work.
    fn release(&mut self, kind: &str, random: &mut Random) -> Value {
        self.releases += 1;
        template(&format!("{kind}-{}", self.releases), random)
    }
}

impl Trial for OcmFleet {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        let agents = AGENTS.iter().take(self.clusters as usize);
        let agents = agents.map(|agent| -> Vec<&'static dyn Dialect> { vec![agent] });
        std::iter::once(vec![self.hub]).chain(agents).collect()
    }

    fn members(&self, index: usize) -> Vec<SmolStr> {
        let number = u32::try_from(index).unwrap_or(0);
        if number == 0 { Vec::new() } else { vec![cluster_name(number).into()] }
    }

    fn begin(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    fn act(&mut self, random: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        self.user_action(random).into_iter().collect()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        self.last_action()
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        if let Some(found) = self.found.take() {
            return Err(found);
        }
        (self.has_writes, self.now) = (true, record.at);
        let key = record.object.key();
        if record.is_deletion() {
            self.seen.remove(key);
        } else {
            self.seen.insert(key.clone(), record.object.clone());
        }
        self.vigil.see(&record.object, record.is_deletion(), record.hand(), record.at)
    }

    /// The workload controllers and the registration agents of the clusters.
    fn react(
        &mut self,
        record: &WriteRecord,
        random: &mut Random,
    ) -> Vec<(SignedDuration, Request)> {
        let object = &record.object;
        if *object.kind() == MANAGED_CLUSTER && !record.is_deletion() {
            let registered = world::registered(object, record.at);
            return registered.map(|it| (random.millis(0, 500), it)).into_iter().collect();
        }
        workload(record, random)
    }

    fn rest(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.has_writes) && self.found.is_none() {
            self.found = self.vigil.rest(now).err();
        }
    }

    fn is_complete(&self) -> Result<(), String> {
        self.found.clone().map_or(Ok(()), Err)?;
        self.vigil.left_behind()?;
        self.has_ended()
    }
}

impl std::fmt::Debug for OcmFleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OcmFleet").field("clusters", &self.clusters).finish_non_exhaustive()
    }
}
