//! Skyhooks under trial: people who change versions, budgets and minds, packages that fail, nodes
//! that reboot; and after every write no compartment has more nodes in progress than its ceiling
//! and its batch allow.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_api::apps::POD;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::Compartments;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::skyhook::Skyhook;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::chance::Chance;
use super::cluster::{Cluster, Fact, Home};
use super::faults::Faults;
use super::{Plan, Trial};
use crate::scenario::Scenario;
use crate::seed::Seed;

const NAME: &str = "tuning";
const SKYHOOKS: &str = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks";
const POLICIES: &str = "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies";
const SKYHOOK: GroupKind = GroupKind::new("skyhook.nvidia.com", "Skyhook");
const NODE: GroupKind = GroupKind::new("", "Node");
const DIALECT: &Skyhook = &Skyhook::new();

/// One Skyhook with a policy, and what befalls it.
#[derive(Debug)]
pub struct Skyhooks {
    seed: u64,
    nodes: [i64; 2],
    policy: Value,
    objects: BTreeMap<ObjectKey, Arc<Object>>,
    vigil: Compartments,
    /// Versions that were set so far.
    versions: u32,
}

impl Skyhooks {
    /// A trial and its plan, as a seed has it.
    pub fn drawn(seed: u64, home: Home) -> (Self, Plan) {
        let mut chance = Chance::new(Seed::new(seed).child("trial", "skyhook"));
        let plan = Plan {
            home,
            faults: Faults::drawn(&mut chance),
            unrest: chance.millis(8_000, 40_000),
            deeds_every: (1_000, 12_000),
            lives: chance.is(500).then_some((500, 15_000)),
            patience: SignedDuration::from_hours(2),
        };
        let trial = Self {
            seed,
            nodes: [chance.between(1, 5), chance.between(0, 3)],
            policy: policy(&mut chance),
            objects: BTreeMap::new(),
            vigil: Compartments::of(NAME),
            versions: 1,
        };
        (trial, plan)
    }

    fn of(&self, kind: GroupKind) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values().filter(move |object| *object.kind() == kind)
    }

    /// Packages of a new version; some of them fail.
    fn packages(&mut self, chance: &mut Chance) -> Value {
        self.versions += 1;
        let sort = chance.pick(&["good", "good", "good", "bad", "flaky"]).unwrap_or(&"good");
        packages(&format!("1.0.{}", self.versions), sort)
    }
}

impl Trial for Skyhooks {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        vec![vec![DIALECT]]
    }

    fn scenario(&self) -> Scenario {
        let mut chance = Chance::new(Seed::new(self.seed).child("scenario", "skyhook"));
        let [first, rest] = self.nodes;
        let reboot = chance.is(300).then(|| {
            let (at, lasts) = (chance.between(2, 30), chance.between(5, 60));
            format!("[{{node: a-0, at: {at}s, event: reboot, for: {lasts}s}}]")
        });
        let pool = |name: &str, count: i64| {
            (count > 0)
                .then(|| format!("{{name: {name}, count: {count}, labels: {{pool: {name}}}}}"))
        };
        let groups: Vec<String> =
            [pool("a", first), pool("b", rest)].into_iter().flatten().collect();
        let groups = groups.join(", ");
        let text = format!(
            "seed: {}\nnodes: [{groups}]\nheartbeat: 30s\nlatencies: {{pull: 0s..1s, start: 0s..1s, init: 0s..2s, stop: 0s..2s}}\nrules:\n- {{when: {{image: '*/bad'}}, then: {{fails: crash, after: 100ms, exitCode: 2}}}}\n- {{when: {{image: '*/flaky'}}, then: {{fails: crash, after: 100ms, times: 2}}}}\nnodeEvents: {}\n",
            self.seed,
            reboot.unwrap_or_else(|| "[]".to_owned()),
        );
        Scenario::from_yaml(&text).expect("the text above is a scenario")
    }

    fn begin(&mut self) -> Vec<Request> {
        let skyhook = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
            "metadata": {"name": NAME}, "spec": {"deploymentPolicy": "policy",
                "nodeSelectors": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
                "packages": packages("1.0.1", "good")}});
        vec![Request::create(POLICIES, self.policy.clone()), Request::create(SKYHOOKS, skyhook)]
    }

    fn act(&mut self, chance: &mut Chance, _cluster: &mut Cluster) -> Vec<Request> {
        let one = |patch| vec![Request::merge(&format!("{SKYHOOKS}/{NAME}"), patch)];
        match chance.between(0, 9) {
            0..=3 => one(json!({"spec": {"packages": self.packages(chance)}})),
            4 => one(json!({"metadata": {"annotations": {"skyhook.nvidia.com/pause": "true"}}})),
            5..=6 => one(json!({"metadata": {"annotations": {"skyhook.nvidia.com/pause": null}}})),
            7 => {
                let spec = policy(chance)["spec"].take();
                let body = json!([{"op": "replace", "path": "/spec", "value": spec}]);
                let path = format!("{POLICIES}/policy");
                let content_type = "application/json-patch+json";
                vec![Request { method: Method::PATCH, path, content_type, body }]
            }
            _ => {
                let pods: Vec<&Arc<Object>> = self.of(POD).collect();
                let pod = chance.pick(&pods).map(|pod| pod.name().to_string());
                let delete = |name: String| Request {
                    method: Method::DELETE,
                    path: format!("/api/v1/namespaces/skyhook/pods/{name}"),
                    content_type: "application/json",
                    body: json!({}),
                };
                pod.map(delete).into_iter().collect()
            }
        }
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        self.versions += 1;
        let patch = json!({"metadata": {"annotations": {"skyhook.nvidia.com/pause": null}},
            "spec": {"packages": packages(&format!("1.0.{}", self.versions), "good")}});
        vec![Request::merge(&format!("{SKYHOOKS}/{NAME}"), patch)]
    }

    fn see(&mut self, fact: &Fact) -> Result<(), String> {
        let key = fact.object.key();
        if fact.is_deletion() {
            self.objects.remove(key);
        } else {
            self.objects.insert(key.clone(), Arc::clone(&fact.object));
        }
        self.vigil.see(&fact.object, fact.is_deletion())
    }

    fn rest(&mut self, _now: Timestamp) {
        self.vigil.rest();
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

fn packages(version: &str, sort: &str) -> Value {
    json!({"tuning": {"version": version, "image": format!("example/{sort}")},
        "driver": {"version": version, "image": "example/driver", "dependsOn": {"tuning": version},
            "interrupt": {"type": "reboot"}}})
}

fn policy(chance: &mut Chance) -> Value {
    let mut compartment = || {
        let budget = if chance.is(500) {
            json!({"count": chance.between(1, 3)})
        } else {
            json!({"percent": chance.between(1, 100)})
        };
        let strategy = match chance.between(0, 3) {
            0 => json!({"fixed": {"initialBatch": chance.between(1, 3)}}),
            1 => json!({"linear": {"initialBatch": 1, "delta": chance.between(1, 2)}}),
            _ => json!({"exponential": {"initialBatch": 1}}),
        };
        json!({"budget": budget, "strategy": strategy})
    };
    let (mut first, default) = (compartment(), compartment());
    first["name"] = json!("first");
    first["selector"] = json!({"matchLabels": {"pool": "a"}});
    json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "DeploymentPolicy",
        "metadata": {"name": "policy"}, "spec": {"default": default, "compartments": [first]}})
}
