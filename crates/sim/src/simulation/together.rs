//! Several trials in one world: a Deployment whose pods run on nodes that a Skyhook interrupts and
//! that a NodePool replaces, beside a hub of KubeFleet and one of Open Cluster Management. Each trial
//! sees the objects that are its own, and its promises hold whatever the others do.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::apps::POD;
use convoy_api::kinds::NODE;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use smol_str::SmolStr;

use super::apps::Apps;
use super::cluster::{Author, Cluster, ServerKind, WriteRecord};
use super::disruptions::{self, Disruptions};
use super::fleets::Fleets;
use super::ocm::OcmFleet;
use super::random::Random;
use super::skyhooks::Skyhooks;
use super::{RunSettings, Trial};
use crate::scenario::Scenario;
use crate::seed::Seed;

/// How much more may happen than in one trial alone.
const EVENTS_FACTOR: u64 = 4;

/// Trials that share a world.
pub struct Together {
    trials: Vec<SharedTrial>,
    scenario: Scenario,
    /// Nodes that are being emptied: pods leave them for reasons that are not their Deployment's.
    drained: BTreeSet<SmolStr>,
}

struct SharedTrial {
    owns: fn(&Object) -> bool,
    trial: Box<dyn Trial>,
    /// How many control loops it has.
    loops: usize,
}

impl SharedTrial {
    fn new(owns: fn(&Object) -> bool, trial: impl Trial + 'static) -> Self {
        let loops = trial.loops().len();
        Self { owns, trial: Box::new(trial), loops }
    }
}

impl Together {
    /// All dialects that there is a trial of, as a seed has them.
    pub fn from_seed(seed: u64) -> (Self, RunSettings) {
        let mut random = Random::new(Seed::new(seed).child("trial", "together"));
        let (apps, _) = Apps::from_seed(seed, ServerKind::Light);
        let (skyhooks, of_skyhooks) = Skyhooks::from_seed(seed, ServerKind::Light);
        let (fleets, of_fleets) = Fleets::from_seed(seed);
        let (ocm, _) = OcmFleet::from_seed(seed);
        let (pool, _) = Disruptions::from_seed(seed);
        let mut scenario = skyhooks.scenario();
        let of_apps = apps.scenario();
        scenario.rules.extend(of_apps.rules);
        scenario.latencies =
            if random.happens(500) { of_apps.latencies } else { scenario.latencies };
        let settings = RunSettings {
            fault_phase: of_skyhooks.fault_phase.max(of_fleets.fault_phase / 2),
            user_actions_every: (200, 4_000),
            settle_timeout: of_skyhooks.settle_timeout,
            events_max: of_fleets.events_max * EVENTS_FACTOR,
            ..of_fleets
        };
        let trials = vec![
            SharedTrial::new(is_of_deployment, apps),
            SharedTrial::new(is_of_skyhook, skyhooks),
            SharedTrial::new(is_of_fleet, fleets),
            SharedTrial::new(is_of_ocm, ocm),
            SharedTrial::new(Disruptions::owns, pool.beside_others()),
        ];
        (Self { trials, scenario, drained: BTreeSet::new() }, settings)
    }

    /// The trial of a control loop, and which of its loops that is.
    fn trial_of(&self, mut index: usize) -> Option<(&SharedTrial, usize)> {
        for shared in &self.trials {
            if index < shared.loops {
                return Some((shared, index));
            }
            index -= shared.loops;
        }
        None
    }

    /// Whether a pod is taken off its node for the node's sake.
    fn is_drained(&self, record: &WriteRecord) -> bool {
        let object = &record.object;
        let is_going = record.is_deletion() || object.is_deleting();
        let is_pod = *object.kind() == POD && is_of_deployment(object);
        is_pod && is_going && self.drained.contains(object.spec_text("nodeName"))
    }
}

/// The Deployment, its ReplicaSets and its pods.
fn is_of_deployment(object: &Object) -> bool {
    object.key().cluster.is_empty() && *object.namespace() == "default"
}

fn is_of_skyhook(object: &Object) -> bool {
    let is_node = *object.kind() == NODE && !Disruptions::owns(object);
    let is_here = *object.namespace() == "skyhook" || is_node;
    object.key().cluster.is_empty() && (is_here || object.kind().group == "skyhook.nvidia.com")
}

fn is_of_fleet(object: &Object) -> bool {
    let key = object.key();
    let is_member = key.cluster.is_empty() || key.cluster.starts_with("member-");
    let others = [is_of_deployment, is_of_skyhook, is_of_ocm, Disruptions::owns];
    is_member && !others.iter().any(|owns| owns(object))
}

fn is_of_ocm(object: &Object) -> bool {
    let key = object.key();
    let is_home = key.namespace == "apps" || key.namespace.starts_with("cluster-");
    let is_known = key.kind.group.ends_with("open-cluster-management.io");
    key.cluster.starts_with("cluster-") || key.cluster.is_empty() && (is_home || is_known)
}

impl Trial for Together {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        self.trials.iter().flat_map(|shared| shared.trial.loops()).collect()
    }

    fn members(&self, index: usize) -> Vec<SmolStr> {
        self.trial_of(index).map_or_else(Vec::new, |(shared, index)| shared.trial.members(index))
    }

    fn scenario(&self) -> Scenario {
        self.scenario.clone()
    }

    fn begin(&mut self) -> Vec<Request> {
        self.trials.iter_mut().flat_map(|shared| shared.trial.begin()).collect()
    }

    fn act(&mut self, random: &mut Random, cluster: &mut Cluster) -> Vec<Request> {
        let last = i64::try_from(self.trials.len()).unwrap_or(1) - 1;
        let at = usize::try_from(random.between(0, last)).unwrap_or(0);
        self.trials[at].trial.act(random, cluster)
    }

    fn end(&mut self, cluster: &mut Cluster) -> Vec<Request> {
        self.trials.iter_mut().flat_map(|shared| shared.trial.end(cluster)).collect()
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let object = &record.object;
        if *object.kind() == NODE {
            let is_cordoned = object.spec().get("unschedulable") == Some(&json!(true));
            if is_cordoned || disruptions::is_tainted(object) || object.is_deleting() {
                self.drained.insert(object.name().clone());
            } else {
                self.drained.remove(object.name());
            }
        }
        let drained = self.is_drained(record).then(|| WriteRecord {
            by: Author::Machines,
            object: object.clone(),
            ..*record
        });
        let record = drained.as_ref().unwrap_or(record);
        let mut owners = self.trials.iter_mut().filter(|shared| (shared.owns)(object));
        owners.try_for_each(|shared| shared.trial.see(record))
    }

    fn react(
        &mut self,
        record: &WriteRecord,
        random: &mut Random,
    ) -> Vec<(SignedDuration, Request)> {
        let owners = self.trials.iter_mut().filter(|shared| (shared.owns)(&record.object));
        owners.flat_map(|shared| shared.trial.react(record, random)).collect()
    }

    fn is_routine(&self, record: &WriteRecord) -> bool {
        let mut owners = self.trials.iter().filter(|shared| (shared.owns)(&record.object));
        owners.any(|shared| shared.trial.is_routine(record))
    }

    fn rest(&mut self, now: Timestamp) {
        self.trials.iter_mut().for_each(|shared| shared.trial.rest(now));
    }

    fn is_complete(&self) -> Result<(), String> {
        self.trials.iter().try_for_each(|shared| shared.trial.is_complete())
    }
}

impl std::fmt::Debug for Together {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Together").field("trials", &self.trials.len()).finish_non_exhaustive()
    }
}
