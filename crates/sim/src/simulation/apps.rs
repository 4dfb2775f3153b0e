//! Deployments under trial: people who change images, sizes and limits, pause, undo and delete,
//! on nodes that die; and a [`Vigil`] over the pods.

use std::collections::BTreeMap;

use convoy_api::apps::{DEPLOYMENT, POD, REPLICA_SET, annotation};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::Vigil;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::{Deployments, ReplicaSets};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::cluster::{Cluster, ServerKind, WriteRecord};
use super::faults::Faults;
use super::random::Random;
use super::trial::Leadership;
use super::{EVENTS_MAX, LoopBehaviour, RunSettings, Trial};
use crate::scenario::Scenario;
use crate::seed::Seed;

const NAMESPACE: &str = "default";
const NAME: &str = "web";

/// One Deployment, and what befalls it.
#[derive(Debug)]
pub struct Apps {
    seed: u64,
    /// Whether both loops run in one process, as in the embedded server, or each in its own.
    is_one_process: bool,
    /// Whether there are two such processes, of which one leads.
    is_led: bool,
    deployment: Value,
    objects: BTreeMap<ObjectKey, Object>,
    vigil: Vigil,
    /// Images that were set so far.
    images: u32,
}

impl Apps {
    /// A trial and its settings, as a seed has it.
    pub fn from_seed(seed: u64, server: ServerKind) -> (Self, RunSettings) {
        let mut random = Random::new(Seed::new(seed).child("trial", "apps"));
        let faults = Faults::random(&mut random);
        let settings = RunSettings {
            server,
            faults,
            // Most worlds are short: many of them meet more than a few long ones.
            fault_phase: if random.happens(100) {
                random.millis(30_000, 120_000)
            } else {
                random.millis(8_000, 30_000)
            },
            user_actions_every: (300, 8_000),
            lifetimes: random.happens(500).then_some((500, 15_000)),
            behaviour: LoopBehaviour::default(),
            settle_timeout: SignedDuration::from_mins(30),
            events_max: EVENTS_MAX,
            drops_old_records: false,
            outages: None,
            leadership: None,
        };
        let trial = Self {
            seed,
            is_one_process: random.happens(600),
            is_led: false,
            deployment: deployment(&mut random),
            objects: BTreeMap::new(),
            vigil: Vigil::default(),
            images: 1,
        };
        (trial, settings)
    }

    /// The same under leader election: two processes, of which each may be suspended, and more
    /// pods, so that they are suspended in the middle of writes.
    pub fn led_from_seed(seed: u64, server: ServerKind) -> (Self, RunSettings) {
        let (mut trial, mut settings) = Self::from_seed(seed, server);
        let mut random = Random::new(Seed::new(seed).child("leadership", "apps"));
        trial.is_led = true;
        trial.deployment["spec"]["replicas"] = json!(random.between(1, 30));
        settings.leadership = Some(Leadership::random(&mut random));
        settings.fault_phase = random.millis(30_000, 180_000);
        settings.lifetimes = settings.lifetimes.map(|_| (5_000, 60_000));
        (trial, settings)
    }

    fn of(&self, kind: GroupKind) -> impl Iterator<Item = &Object> {
        self.objects.values().filter(move |object| *object.kind() == kind)
    }

    fn image(&mut self, random: &mut Random) -> String {
        self.images += 1;
        let sort =
            random.pick(&["good", "good", "good", "bad", "flaky", "slow"]).unwrap_or(&"good");
        format!("web:{sort}-{}", self.images)
    }

    /// As `kubectl rollout undo` does: the template of another revision is put back.
    fn undo(&self, random: &mut Random) -> Option<Request> {
        let sets: Vec<&Object> = self.of(REPLICA_SET).collect();
        let mut template = random.pick(&sets)?.spec().get("template")?.clone();
        template
            .pointer_mut("/metadata/labels")?
            .as_object_mut()?
            .shift_remove("pod-template-hash");
        let body = json!([{"op": "replace", "path": "/spec/template", "value": template}]);
        let (method, path) = (Method::PATCH, path("apps/v1", "deployments", NAME));
        Some(Request { method, path, content_type: "application/json-patch+json", body })
    }

    fn remove_pods(&self, random: &mut Random) -> Vec<Request> {
        let pods: Vec<&Object> = self.of(POD).collect();
        let count = random.between(1, 3);
        let picked = (0..count).filter_map(|_| random.pick(&pods).map(|pod| pod.name()));
        picked.map(|name| Request::delete(path("v1", "pods", name))).collect()
    }
}

impl Trial for Apps {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        if self.is_led {
            vec![vec![&Deployments, &ReplicaSets], vec![&Deployments, &ReplicaSets]]
        } else if self.is_one_process {
            vec![vec![&Deployments, &ReplicaSets]]
        } else {
            vec![vec![&Deployments], vec![&ReplicaSets]]
        }
    }

    fn scenario(&self) -> Scenario {
        let mut random = Random::new(Seed::new(self.seed).child("scenario", "apps"));
        let mut text = format!(
            "seed: {}\nnodes: [{{name: node, count: 3}}]\nheartbeat: 30s\nlatencies: {{pull: 0s..1s, ready: 0s..2s, stop: 0s..3s}}\nrules:\n- {{when: {{image: 'web:bad*'}}, then: {{fails: never-ready}}}}\n- {{when: {{image: 'web:flaky*'}}, then: {{fails: crash, after: 2s, times: 2}}}}\n- {{when: {{image: 'web:slow*'}}, then: {{ready: 5s..20s}}}}\n",
            self.seed
        );
        let happens = if random.happens(400) {
            let what = random.pick(&["silent", "reboot", "not-ready"]).unwrap_or(&"silent");
            let (node, at, lasts) =
                (random.between(0, 2), random.between(2, 30), random.between(10, 120));
            format!("[{{node: node-{node}, at: {at}s, event: {what}, for: {lasts}s}}]")
        } else if random.happens(200) {
            format!("[{{node: node-0, at: {}s, event: vanish}}]", random.between(2, 30))
        } else {
            "[]".to_owned()
        };
        text.push_str("nodeEvents: ");
        text.push_str(&happens);
        Scenario::from_yaml(&text).expect("the text above is a scenario")
    }

    fn begin(&mut self) -> Vec<Request> {
        vec![Request::create(&path("apps/v1", "deployments", ""), self.deployment.clone())]
    }

    fn act(&mut self, random: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        let one = |patch| vec![Request::merge(&path("apps/v1", "deployments", NAME), patch)];
        match random.between(0, 11) {
            0..=3 => {
                let image = self.image(random);
                one(image_patch(&image))
            }
            4..=5 => {
                let most = if self.is_led { 30 } else { 6 };
                one(json!({"spec": {"replicas": random.between(0, most)}}))
            }
            6 => one(json!({"spec": {"paused": true}})),
            7..=8 => one(json!({"spec": {"paused": false}})),
            9 => self.undo(random).into_iter().collect(),
            10 if self.deployment.pointer("/spec/strategy/rollingUpdate").is_some() => {
                one(json!({"spec": {"strategy": {"rollingUpdate": limits(random)}}}))
            }
            _ => self.remove_pods(random),
        }
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        self.images += 1;
        let mut patch = image_patch(&format!("web:good-{}", self.images));
        patch["spec"]["paused"] = json!(false);
        vec![Request::merge(&path("apps/v1", "deployments", NAME), patch)]
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let key = record.object.key();
        if record.is_deletion() {
            self.objects.remove(key);
        } else {
            self.objects.insert(key.clone(), record.object.clone());
        }
        self.vigil.see(&record.object, record.is_deletion(), record.hand(), record.at)
    }

    fn rest(&mut self, now: Timestamp) {
        self.vigil.rest(now);
    }

    fn is_complete(&self) -> Result<(), String> {
        for deployment in self.of(DEPLOYMENT) {
            complete(deployment)?;
            let wanted = deployment.spec().pointer("/template/spec/containers/0/image");
            if let Some(pod) = self.of(POD).find(|pod| pod.is_deleting()) {
                return Err(format!("{} is still there", pod.key()));
            }
            let n = deployment.spec().get("replicas").and_then(Value::as_u64).unwrap_or(1);
            let pods: Vec<&Object> = self.of(POD).collect();
            let new = pods.iter().filter(|pod| pod.spec().pointer("/containers/0/image") == wanted);
            let new = new.count() as u64;
            if new != n || pods.len() as u64 != n {
                let all = pods.len();
                return Err(format!("{new} of {all} pods are new, where {n} are wanted"));
            }
        }
        Ok(())
    }
}

/// What the status says.
fn complete(deployment: &Object) -> Result<(), String> {
    let status = deployment.status();
    let number = |field: &str| status.get(field).and_then(Value::as_i64).unwrap_or(0);
    let n = deployment.spec().get("replicas").and_then(Value::as_i64).unwrap_or(1);
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    let is_complete = counts.iter().all(|field| number(field) == n)
        && number("observedGeneration") >= deployment.generation();
    if is_complete { Ok(()) } else { Err(format!("{} of {n}: {status}", deployment.key())) }
}

fn deployment(random: &mut Random) -> Value {
    let recreate = random.happens(150);
    let strategy = if recreate {
        json!({"type": "Recreate"})
    } else {
        json!({"type": "RollingUpdate", "rollingUpdate": limits(random)})
    };
    let mut spec = json!({
        "replicas": random.between(1, 5), "strategy": strategy,
        "revisionHistoryLimit": random.between(0, 3),
        "selector": {"matchLabels": {"app": NAME}},
        "template": {"metadata": {"labels": {"app": NAME}},
            "spec": {"terminationGracePeriodSeconds": random.between(0, 10),
                "containers": [{"name": "web", "image": "web:good-1"}]}},
    });
    if random.happens(300) {
        spec["minReadySeconds"] = json!(random.between(1, 8));
    }
    if random.happens(500) {
        spec["progressDeadlineSeconds"] = json!(random.between(10, 60));
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME}, "spec": spec})
}

/// Limits of which not both are nothing.
fn limits(random: &mut Random) -> Value {
    let mut draw = |low: i64| match random.between(0, 3) {
        0 => json!(format!("{}%", random.between(low, 2) * 25)),
        _ => json!(random.between(low, 3)),
    };
    let surge = draw(0);
    let low = i64::from(surge == json!(0) || surge == json!("0%"));
    json!({"maxSurge": surge, "maxUnavailable": draw(low)})
}

fn image_patch(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
}

fn path(api_version: &str, plural: &str, name: &str) -> String {
    let root =
        if api_version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api_version}") };
    let collection = format!("{root}/namespaces/{NAMESPACE}/{plural}");
    if name.is_empty() { collection } else { format!("{collection}/{name}") }
}

/// What matters of an object, for people who look for a fault.
pub(super) fn summary(object: &Object) -> String {
    let (spec, status) = (object.spec(), object.status());
    let number = |of: &Value, field: &str| of.get(field).and_then(Value::as_i64).unwrap_or(0);
    match object.kind() {
        kind if *kind == DEPLOYMENT || *kind == REPLICA_SET => {
            let image = spec.pointer("/template/spec/containers/0/image").cloned();
            let paused = if spec.get("paused") == Some(&json!(true)) { " paused" } else { "" };
            let limits = spec.pointer("/strategy/rollingUpdate").map(Value::to_string);
            format!(
                " {} r{} wants {} (g{}) of {:?}{paused}: has {} ready {} available {} (g{}) {}",
                image.unwrap_or_default(),
                object.annotation(annotation::REVISION).unwrap_or("-"),
                number(spec, "replicas"),
                object.generation(),
                object.annotation(annotation::DESIRED_REPLICAS).unwrap_or("-"),
                number(status, "replicas"),
                number(status, "readyReplicas"),
                number(status, "availableReplicas"),
                number(status, "observedGeneration"),
                limits.unwrap_or_default(),
            )
        }
        kind if *kind == POD => {
            let ready = object.condition("Ready").and_then(|ready| ready.get("status"));
            let phase = status.get("phase").and_then(Value::as_str).unwrap_or_default();
            let going = if object.is_deleting() { " going" } else { "" };
            format!(" {phase} ready {}{going}", ready.cloned().unwrap_or_default())
        }
        _ => String::new(),
    }
}
