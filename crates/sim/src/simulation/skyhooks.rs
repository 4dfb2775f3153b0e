//! Skyhooks under trial: people who change versions, config, budgets, labels and minds, packages
//! that fail, nodes that reboot, come and go, resets of nodes and of batches; and after every write no
//! compartment has more nodes in progress than its ceiling and its batch allow, and every batch is
//! scored by its own nodes.

mod world;

use std::collections::BTreeMap;

use convoy_api::apps::POD;
use convoy_api::kinds::NODE;
use convoy_api::skyhook::names::PAUSE;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::Compartments;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::skyhook::{Skyhook, manual};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use self::world::{PackageSet, Size, policy};
use super::cluster::{Cluster, ServerKind, WriteRecord};
use super::faults::Faults;
use super::random::Random;
use super::{EVENTS_MAX, LoopBehaviour, RunSettings, Trial};
use crate::node;
use crate::scenario::Scenario;
use crate::seed::Seed;

const NAME: &str = "tuning";
const SKYHOOKS: &str = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks";
const POLICIES: &str = "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NODES: &str = "/api/v1/nodes";
const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
const POLICY: GroupKind = GroupKind::new("skyhook.nvidia.com", "DeploymentPolicy");
const DIALECT: &Skyhook = &Skyhook::new();

/// One Skyhook with a policy, and what befalls it.
#[derive(Debug)]
pub struct Skyhooks {
    /// Whether the server has to be told of the kinds first.
    is_real: bool,
    scenario: Scenario,
    package_set: PackageSet,
    policy: Value,
    objects: BTreeMap<ObjectKey, Object>,
    vigil: Compartments,
    /// Versions and files that were set so far, and nodes that were added.
    versions: u32,
    files: u32,
    joined: u32,
    /// Nodes that a reset has yet to reach, the last one first.
    to_reset: Vec<String>,
    /// Something was written since everything last rested.
    has_writes: bool,
}

impl Skyhooks {
    /// A trial and its settings, as a seed has it.
    pub fn from_seed(seed: u64, server: ServerKind) -> (Self, RunSettings) {
        let mut random = Random::new(Seed::new(seed).child("trial", "skyhook"));
        // Most worlds are small and short: many of them meet more than a few large ones.
        let size = Size::random(&mut random);
        let settings = RunSettings {
            server,
            faults: Faults::random(&mut random),
            fault_phase: size.fault_phase(&mut random),
            user_actions_every: (500, 6_000),
            lifetimes: random.happens(500).then_some((300, 10_000)),
            behaviour: LoopBehaviour {
                reaction_delay: SignedDuration::from_millis(
                    *random.pick(&[0, 20, 300]).unwrap_or(&0),
                ),
                batches_events: random.happens(300),
            },
            settle_timeout: SignedDuration::from_hours(2),
            events_max: EVENTS_MAX,
            drops_old_records: false,
            outages: None,
            leadership: None,
        };
        let trial = Self {
            is_real: server == ServerKind::Real,
            scenario: size.scenario(seed, &mut random),
            package_set: PackageSet::random(&mut random),
            policy: policy(&mut random),
            objects: BTreeMap::new(),
            vigil: Compartments::of(NAME),
            versions: 1,
            files: 1,
            joined: 0,
            to_reset: Vec::new(),
            has_writes: false,
        };
        (trial, settings)
    }

    fn of(&self, kind: GroupKind) -> impl Iterator<Item = &Object> {
        self.objects.values().filter(move |object| *object.kind() == kind)
    }

    fn any(&self, kind: GroupKind, random: &mut Random) -> Option<Object> {
        let all: Vec<&Object> = self.of(kind).collect();
        random.pick(&all).map(|object| (*object).clone())
    }

    /// Packages of a new version, or with new files; some of them fail.
    fn packages(&mut self, random: &mut Random) -> Value {
        if random.happens(700) {
            self.versions += 1;
        } else {
            self.files += 1;
        }
        let sort = random.pick(&["good", "good", "good", "bad", "flaky"]).unwrap_or(&"good");
        self.package_set.packages(self.versions, self.files, sort)
    }

    /// Somebody edits the policy, takes it away, or puts one back.
    fn change_policy(&mut self, random: &mut Random) -> Request {
        let path = format!("{POLICIES}/policy");
        if self.of(POLICY).next().is_none() {
            return Request::create(POLICIES, policy(random));
        }
        if random.happens(300) {
            return Request::delete(path);
        }
        let spec = policy(random)["spec"].take();
        let body = json!([{"op": "replace", "path": "/spec", "value": spec}]);
        Request { method: Method::PATCH, path, content_type: "application/json-patch+json", body }
    }

    /// Somebody resets batches, or nodes with or without them, as `kubectl skyhook` does: the status
    /// goes first, and nodes follow one by one, whatever happens in between.
    fn reset(&mut self, random: &mut Random) -> Option<Request> {
        let skyhook = self.of(SKYHOOK).next()?;
        let patch = match random.between(0, 2) {
            0 => manual::reset_batches(skyhook),
            kind => {
                let patch = manual::forget_picks(skyhook, kind == 1);
                self.to_reset = self.of(NODE).map(|node| node.name().to_string()).collect();
                patch
            }
        };
        Some(fenced(&format!("{SKYHOOKS}/{NAME}/status"), self.of(SKYHOOK).next()?, patch?))
    }

    /// The reset that is under way reaches its next node.
    fn continue_reset(&mut self) -> Option<Request> {
        let name = self.to_reset.pop()?;
        let node = self.of(NODE).find(|node| **node.name() == *name)?;
        let patch = manual::forget(node, NAME)?;
        Some(fenced(&format!("{NODES}/{name}"), node, patch))
    }

    /// A node joins, leaves, or moves to another compartment.
    fn change_nodes(&mut self, random: &mut Random, now: Timestamp) -> Option<Request> {
        let template = random.pick(&self.scenario.nodes)?;
        let count = self.of(NODE).count();
        if count < 8 && random.happens(300) {
            self.joined += 1;
            let number = 100 + self.joined;
            let body = node::node(
                &self.scenario,
                &convoy_apiserver::git_version(),
                template,
                number,
                number,
                now,
            );
            return Some(Request::create(NODES, body));
        }
        let node = self.any(NODE, random)?;
        let path = format!("{NODES}/{}", node.name());
        if count > 1 && random.happens(300) {
            return Some(Request::delete(path));
        }
        let pool = random.pick(&["a", "b"])?;
        Some(Request::merge(&path, json!({"metadata": {"labels": {"pool": pool}}})))
    }
}

/// A patch of an object as it was read.
fn fenced(path: &str, read: &Object, mut patch: Value) -> Request {
    patch["metadata"]["resourceVersion"] = json!(read.resource_version());
    Request::merge(path, patch)
}

impl Trial for Skyhooks {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        vec![vec![DIALECT]]
    }

    fn scenario(&self) -> Scenario {
        self.scenario.clone()
    }

    fn begin(&mut self) -> Vec<Request> {
        let skyhook = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
            "metadata": {"name": NAME}, "spec": {"deploymentPolicy": "policy",
                "nodeSelectors": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
                "packages": self.package_set.packages(1, 1, "good")}});
        let mut requests = Vec::new();
        if self.is_real {
            let definition = |crd| Request::create(DEFINITIONS, json!(crd));
            requests.extend(convoy_api::skyhook::crds().into_iter().map(definition));
            let namespace = json!({"metadata": {"name": "skyhook"}});
            requests.push(Request::create("/api/v1/namespaces", namespace));
        }
        requests.push(Request::create(POLICIES, self.policy.clone()));
        requests.push(Request::create(SKYHOOKS, skyhook));
        requests
    }

    fn act(&mut self, random: &mut Random, cluster: &mut Cluster) -> Vec<Request> {
        let one = |patch| Some(Request::merge(&format!("{SKYHOOKS}/{NAME}"), patch));
        let paused = |pause: Value| one(json!({"metadata": {"annotations": {(PAUSE): pause}}}));
        if !self.to_reset.is_empty() {
            return self.continue_reset().into_iter().collect();
        }
        let requested = match random.between(0, 18) {
            0..=4 => one(json!({"spec": {"packages": self.packages(random)}})),
            5 => paused(json!("true")),
            6..=8 => paused(Value::Null),
            9..=10 => Some(self.change_policy(random)),
            11..=13 => self.change_nodes(random, cluster.now()),
            14..=15 => self.reset(random),
            _ => self.any(POD, random).map(|pod| {
                Request::delete(format!("/api/v1/namespaces/skyhook/pods/{}", pod.name()))
            }),
        };
        requested.into_iter().collect()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        self.versions += 1;
        let patch = json!({"metadata": {"annotations": {(PAUSE): null}},
            "spec": {"packages": self.package_set.packages(self.versions, self.files, "good")}});
        let mut requests = vec![Request::merge(&format!("{SKYHOOKS}/{NAME}"), patch)];
        // Where batch state is kept, a stop outlives the version that failed.
        let first = self.of(SKYHOOK).next().and_then(manual::reset_batches);
        requests
            .extend(first.map(|patch| Request::merge(&format!("{SKYHOOKS}/{NAME}/status"), patch)));
        if self.of(POLICY).next().is_none() {
            requests.push(Request::create(POLICIES, self.policy.clone()));
        }
        requests
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let key = record.object.key();
        self.has_writes = true;
        if record.is_deletion() {
            self.objects.remove(key);
        } else {
            self.objects.insert(key.clone(), record.object.clone());
        }
        self.vigil.see(&record.object, record.is_deletion())
    }

    fn rest(&mut self, _now: Timestamp) {
        if std::mem::take(&mut self.has_writes) {
            self.vigil.rest();
        }
    }

    fn is_complete(&self) -> Result<(), String> {
        for skyhook in self.of(SKYHOOK) {
            if skyhook.status_text("status") != "complete" {
                return Err(format!("{} is not complete: {}", skyhook.key(), skyhook.status()));
            }
        }
        let version = format!("tuning|1.0.{}", self.versions);
        for node in self.of(NODE) {
            let state = node.annotation("skyhook.nvidia.com/nodeState_tuning").unwrap_or_default();
            if !state.contains(&version) || node.spec().get("unschedulable") == Some(&json!(true)) {
                return Err(format!("{} is not done: {state}", node.key()));
            }
        }
        match self.of(POD).next() {
            Some(pod) => Err(format!("{} is still there", pod.key())),
            None => Ok(()),
        }
    }
}
