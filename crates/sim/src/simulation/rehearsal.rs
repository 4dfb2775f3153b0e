//! A rollout rehearsed: a Skyhook goes through a fleet of any size to its end, in virtual time and
//! with nothing in its way. What must hold is looked at after every write all the same.

use std::collections::BTreeSet;

use convoy_api::apps::POD;
use convoy_api::kinds::NODE;
use convoy_api::{GroupKind, Object};
use convoy_check::Compartments;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::skyhook::Skyhook;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::cluster::{Cluster, WriteRecord};
use super::random::Random;
use super::{RunSettings, Trial};
use crate::scenario::Scenario;

const NAME: &str = "fleet";
const POLICIES: &str = "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies";
const SKYHOOKS: &str = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks";
const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
const DIALECT: &Skyhook = &Skyhook::new();
/// Compartments that a large fleet is divided into.
const POOLS_MAX: u32 = 20;

/// A Skyhook, its packages and its fleet.
#[derive(Debug)]
pub struct Rehearsal {
    nodes: u32,
    packages: usize,
    vigil: Compartments,
    /// Nodes that are complete, of those that are there.
    complete: BTreeSet<String>,
    there: BTreeSet<String>,
    pods: BTreeSet<String>,
    /// What the Skyhook says of itself.
    word: String,
    has_writes: bool,
}

impl Rehearsal {
    /// With up to 26 packages, of which none disturbs its node.
    pub fn new(nodes: u32, packages: usize) -> (Self, RunSettings) {
        let trial = Self {
            nodes,
            packages,
            vigil: Compartments::of(NAME),
            complete: BTreeSet::new(),
            there: BTreeSet::new(),
            pods: BTreeSet::new(),
            word: String::new(),
            has_writes: false,
        };
        (trial, RunSettings::undisturbed())
    }

    fn pools(&self) -> u32 {
        self.nodes.div_ceil(5).clamp(1, POOLS_MAX)
    }
}

impl Trial for Rehearsal {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        vec![vec![DIALECT]]
    }

    fn scenario(&self) -> Scenario {
        let pools = self.pools();
        let pool = |number: u32| {
            let count = self.nodes / pools + u32::from(number < self.nodes % pools);
            let name = format!("pool-{number}");
            json!({"name": name, "count": count, "labels": {"pool": name}})
        };
        let pools: Vec<Value> = (0..pools).map(pool).collect();
        let text = json!({"seed": 1, "nodes": pools, "heartbeat": "5m",
            "latencies": {"pull": "0s", "start": "0s", "init": "1s..5s", "stop": "0s..2s"}});
        Scenario::from_yaml(&text.to_string()).expect("the text above is a scenario")
    }

    fn begin(&mut self) -> Vec<Request> {
        let terms = |name: String| {
            json!({"name": name, "selector": {"matchLabels": {"pool": name}},
                "budget": {"percent": 20}, "strategy": {"exponential": {"initialBatch": 2}}})
        };
        let compartments: Vec<Value> =
            (0..self.pools()).map(|number| terms(format!("pool-{number}"))).collect();
        let default = json!({"budget": {"count": 1}, "strategy": {"fixed": {"initialBatch": 1}}});
        let policy = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1",
            "kind": "DeploymentPolicy", "metadata": {"name": "policy"},
            "spec": {"default": default, "compartments": compartments}});
        let package = |letter: char| {
            let package = json!({"version": "1.0.0", "image": "example/package"});
            (format!("package-{letter}"), package)
        };
        let packages: Map<String, Value> = ('a'..='z').take(self.packages).map(package).collect();
        let skyhook = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
            "metadata": {"name": NAME}, "spec": {"deploymentPolicy": "policy",
                "nodeSelectors": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
                "packages": packages}});
        vec![Request::create(POLICIES, policy), Request::create(SKYHOOKS, skyhook)]
    }

    fn act(&mut self, _chance: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let object: &Object = &record.object;
        self.has_writes = true;
        let keep = |set: &mut BTreeSet<String>, is_in: bool| {
            if is_in {
                set.insert(object.name().to_string());
            } else {
                set.remove(object.name().as_str());
            }
        };
        let is_there = !record.is_deletion();
        if *object.kind() == NODE {
            let word = object.annotation("skyhook.nvidia.com/status_fleet");
            keep(&mut self.complete, is_there && word == Some("complete"));
            keep(&mut self.there, is_there);
        } else if *object.kind() == POD {
            keep(&mut self.pods, is_there);
        } else if *object.kind() == SKYHOOK {
            object.status_text("status").clone_into(&mut self.word);
        }
        self.vigil.see(object, record.is_deletion())
    }

    fn rest(&mut self, _now: Timestamp) {
        if std::mem::take(&mut self.has_writes) {
            self.vigil.rest();
        }
    }

    fn is_complete(&self) -> Result<(), String> {
        let (complete, there) = (self.complete.len(), self.there.len());
        let wanted = usize::try_from(self.nodes).unwrap_or(usize::MAX);
        if complete == wanted && there == wanted && self.pods.is_empty() && self.word == "complete"
        {
            return Ok(());
        }
        let (pods, word) = (self.pods.len(), &self.word);
        Err(format!("{complete} of {there} nodes are complete, {pods} pods there, it is {word:?}"))
    }
}
