//! Skyhooks under trial: people who change versions, config, budgets, labels and minds, packages
//! that fail, nodes that reboot, come and go; and after every write no compartment has more nodes
//! in progress than its ceiling and its batch allow.

mod world;

use std::collections::BTreeMap;

use convoy_api::apps::POD;
use convoy_api::kinds::NODE;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::Compartments;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::skyhook::Skyhook;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use self::world::{Size, Wares, policy};
use super::chance::Chance;
use super::cluster::{Cluster, Fact, Home};
use super::faults::Faults;
use super::{EVENTS_MAX, Manner, Plan, Trial};
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
    wares: Wares,
    policy: Value,
    objects: BTreeMap<ObjectKey, Object>,
    vigil: Compartments,
    /// Versions and files that were set so far, and nodes that were added.
    versions: u32,
    files: u32,
    joined: u32,
    /// Something was written since everything last rested.
    is_stirred: bool,
}

impl Skyhooks {
    /// A trial and its plan, as a seed has it.
    pub fn drawn(seed: u64, home: Home) -> (Self, Plan) {
        let mut chance = Chance::new(Seed::new(seed).child("trial", "skyhook"));
        // Most worlds are small and short: many of them meet more than a few large ones.
        let size = Size::drawn(&mut chance);
        let plan = Plan {
            home,
            faults: Faults::drawn(&mut chance),
            unrest: size.unrest(&mut chance),
            deeds_every: (500, 6_000),
            lives: chance.is(500).then_some((300, 10_000)),
            manner: Manner {
                thinks: SignedDuration::from_millis(*chance.pick(&[0, 20, 300]).unwrap_or(&0)),
                in_bulk: chance.is(300),
            },
            patience: SignedDuration::from_hours(2),
            events_max: EVENTS_MAX,
            forgets: false,
        };
        let trial = Self {
            is_real: home == Home::Real,
            scenario: size.scenario(seed, &mut chance),
            wares: Wares::drawn(&mut chance),
            policy: policy(&mut chance),
            objects: BTreeMap::new(),
            vigil: Compartments::of(NAME),
            versions: 1,
            files: 1,
            joined: 0,
            is_stirred: false,
        };
        (trial, plan)
    }

    fn of(&self, kind: GroupKind) -> impl Iterator<Item = &Object> {
        self.objects.values().filter(move |object| *object.kind() == kind)
    }

    fn any(&self, kind: GroupKind, chance: &mut Chance) -> Option<Object> {
        let all: Vec<&Object> = self.of(kind).collect();
        chance.pick(&all).map(|object| (*object).clone())
    }

    /// Packages of a new version, or with new files; some of them fail.
    fn packages(&mut self, chance: &mut Chance) -> Value {
        if chance.is(700) {
            self.versions += 1;
        } else {
            self.files += 1;
        }
        let sort = chance.pick(&["good", "good", "good", "bad", "flaky"]).unwrap_or(&"good");
        self.wares.packages(self.versions, self.files, sort)
    }

    /// Somebody edits the policy, takes it away, or puts one back.
    fn change_policy(&mut self, chance: &mut Chance) -> Request {
        let path = format!("{POLICIES}/policy");
        if self.of(POLICY).next().is_none() {
            return Request::create(POLICIES, policy(chance));
        }
        if chance.is(300) {
            return delete(path);
        }
        let spec = policy(chance)["spec"].take();
        let body = json!([{"op": "replace", "path": "/spec", "value": spec}]);
        Request { method: Method::PATCH, path, content_type: "application/json-patch+json", body }
    }

    /// A node joins, leaves, or moves to another compartment.
    fn change_nodes(&mut self, chance: &mut Chance, now: Timestamp) -> Option<Request> {
        let template = chance.pick(&self.scenario.nodes)?;
        let count = self.of(NODE).count();
        if count < 8 && chance.is(300) {
            self.joined += 1;
            let number = 100 + self.joined;
            let body = node::node(&self.scenario, template, number, number, now);
            return Some(Request::create(NODES, body));
        }
        let node = self.any(NODE, chance)?;
        let path = format!("{NODES}/{}", node.name());
        if count > 1 && chance.is(300) {
            return Some(delete(path));
        }
        let pool = chance.pick(&["a", "b"])?;
        Some(Request::merge(&path, json!({"metadata": {"labels": {"pool": pool}}})))
    }
}

/// Removes what stands at a path.
fn delete(path: String) -> Request {
    Request { method: Method::DELETE, path, content_type: "application/json", body: json!({}) }
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
                "packages": self.wares.packages(1, 1, "good")}});
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

    fn act(&mut self, chance: &mut Chance, cluster: &mut Cluster) -> Vec<Request> {
        let one = |patch| Some(Request::merge(&format!("{SKYHOOKS}/{NAME}"), patch));
        let paused = |pause: Value| {
            one(json!({"metadata": {"annotations": {"skyhook.nvidia.com/pause": pause}}}))
        };
        let deed = match chance.between(0, 15) {
            0..=4 => one(json!({"spec": {"packages": self.packages(chance)}})),
            5 => paused(json!("true")),
            6..=8 => paused(Value::Null),
            9..=10 => Some(self.change_policy(chance)),
            11..=13 => self.change_nodes(chance, cluster.now()),
            _ => self
                .any(POD, chance)
                .map(|pod| delete(format!("/api/v1/namespaces/skyhook/pods/{}", pod.name()))),
        };
        deed.into_iter().collect()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        self.versions += 1;
        let patch = json!({"metadata": {"annotations": {"skyhook.nvidia.com/pause": null}},
            "spec": {"packages": self.wares.packages(self.versions, self.files, "good")}});
        let mut requests = vec![Request::merge(&format!("{SKYHOOKS}/{NAME}"), patch)];
        if self.of(POLICY).next().is_none() {
            requests.push(Request::create(POLICIES, self.policy.clone()));
        }
        requests
    }

    fn see(&mut self, fact: &Fact) -> Result<(), String> {
        let key = fact.object.key();
        self.is_stirred = true;
        if fact.is_deletion() {
            self.objects.remove(key);
        } else {
            self.objects.insert(key.clone(), fact.object.clone());
        }
        self.vigil.see(&fact.object, fact.is_deletion())
    }

    fn rest(&mut self, _now: Timestamp) {
        if std::mem::take(&mut self.is_stirred) {
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
