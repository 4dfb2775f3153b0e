//! A hub and its managed clusters in one world: the hub's controllers, an agent for each cluster,
//! and something that makes workloads run.

use convoy_api::kinds::DEPLOYMENT;
use convoy_api::ocm::names::{APPLIED_MANIFEST_WORK, MANIFEST_WORK};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::{Applier, ApplyError};
use convoy_plan::dialect::ocm::{Hub, Parts};
use convoy_plan::dialect::ocm_agent::{OcmAgent, Options};
use convoy_plan::{Denial, Dialect, Step, World, complain, decide};
use convoy_testkit::{NOW, object};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) const WORK_API: &str = "work.open-cluster-management.io/v1";
pub(crate) const HUB: &str = "https://hub:6443";
pub(crate) const EU: &str = "eu";

pub(crate) fn now() -> Timestamp {
    NOW.parse().expect("a fixed instant")
}

pub(crate) fn on(member: &str, kind: &GroupKind, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { cluster: member.into(), ..kind.key(namespace, name) }
}

/// What stands for a work on the member `eu`.
pub(crate) fn applied(work: &str) -> ObjectKey {
    let name = format!("{}-{work}", Options::new(EU, HUB).hub_hash);
    on(EU, &APPLIED_MANIFEST_WORK, "", &name)
}

pub(crate) fn web() -> ObjectKey {
    MANIFEST_WORK.key(EU, "web")
}

/// The hub, its clusters, and the time.
pub(crate) struct Site {
    pub(crate) applier: Applier,
    pub(crate) agents: Vec<OcmAgent>,
    hub: Option<Hub>,
}

impl Site {
    /// Clusters with the controllers of a hub.
    pub(crate) fn new(objects: Vec<Object>, members: &[&str]) -> Self {
        let world: World = objects.into_iter().collect();
        let agents = members.iter().map(|member| OcmAgent::new(Options::new(*member, HUB)));
        let hub = Some(Hub { parts: Parts::ALL });
        Self { applier: Applier::new(world, now()), agents: agents.collect(), hub }
    }

    /// One cluster, whose hub only holds works.
    pub(crate) fn of_agent(objects: Vec<Object>, options: Options) -> Self {
        let world: World = objects.into_iter().collect();
        let agents = vec![OcmAgent::new(options)];
        Self { applier: Applier::new(world, now()), agents, hub: None }
    }

    pub(crate) fn world(&self) -> &World {
        self.applier.world()
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> &Object {
        self.world().get(key).unwrap_or_else(|| panic!("{key} is missing"))
    }

    pub(crate) fn has(&self, key: &ObjectKey) -> bool {
        self.world().get(key).is_some()
    }

    pub(crate) fn edit(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Value)) {
        self.applier.edit(key, change);
    }

    /// The steps of the hub and of all agents, as of now.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let hub = self.hub.as_ref().map(|hub| -> &dyn Dialect { hub });
        let agents = self.agents.iter().map(|agent| -> &dyn Dialect { agent });
        let mut steps = Vec::new();
        for dialect in hub.into_iter().chain(agents) {
            for rollout in dialect.rollouts(self.world()) {
                steps.extend(decide(dialect, self.world(), &[], rollout.key(), self.applier.now()));
            }
        }
        steps
    }

    pub(crate) fn step(&self, key: &ObjectKey) -> Step {
        self.steps().into_iter().find(|step| step.rollout == *key).expect("it is a rollout")
    }

    /// One round: everybody decides and writes. Whether anything was written.
    pub(crate) fn round(&mut self) -> bool {
        let mut busy = false;
        for step in &self.steps() {
            match self.applier.apply(step) {
                Ok(()) => busy |= !step.is_quiet(),
                Err(ApplyError::Stale(_) | ApplyError::Exists(_) | ApplyError::NotFound(_)) => {
                    busy = true;
                }
                Err(ApplyError::Denied(target, message)) => {
                    busy |= self.complain(step, *target, message);
                }
                Err(error) => panic!("{error}"),
            }
        }
        let runs = self.run_workloads();
        busy || runs
    }

    /// Tells about a denied write as the control loop does. Whether that is news.
    fn complain(&mut self, step: &Step, target: ObjectKey, message: String) -> bool {
        let denial = Denial { target, verb: "apply", message };
        let is_its = |agent: &&OcmAgent| agent.is_rollout(self.world(), self.get(&step.rollout));
        let agent = self.agents.iter().find(is_its).expect("the agent that decided");
        let (world, now) = (self.world(), self.applier.now());
        let complaint = complain(agent, world, &[], &step.rollout, &denial, now);
        let told = complaint.expect("the rollout is there").status;
        let is_news = told.is_some();
        if let Some(status) = told {
            self.applier.edit(&step.rollout, |raw| raw["status"] = status);
        }
        is_news
    }

    /// Rounds until nobody writes; time stands still.
    pub(crate) fn settle(&mut self) {
        for _ in 0..60 {
            if !self.round() {
                return;
            }
        }
        let busy = self.steps().into_iter().filter(|step| !step.is_quiet());
        let busy: Vec<String> = busy.map(|step| format!("{:#}", step.to_json())).collect();
        panic!("still writing: {}", busy.join("\n"));
    }

    /// Deployments run at once, unless their image is bad.
    fn run_workloads(&mut self) -> bool {
        let members = self.world().iter().filter(|object| !object.key().cluster.is_empty());
        let all: Vec<Object> = members.filter(|it| *it.kind() == DEPLOYMENT).cloned().collect();
        let mut changed = false;
        for deployment in all {
            let image = &deployment.spec()["template"]["spec"]["containers"][0]["image"];
            let replicas = deployment.spec()["replicas"].as_i64().unwrap_or(1);
            let good = if image == "bad" { 0 } else { replicas };
            let status = json!({"observedGeneration": deployment.generation(),
                "replicas": replicas, "availableReplicas": good, "readyReplicas": good});
            if *deployment.status() != status {
                self.applier.edit(deployment.key(), |raw| raw["status"] = status);
                changed = true;
            }
        }
        changed
    }
}

pub(crate) fn shop() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
}

pub(crate) fn deployment(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "app", "image": image}]}}}})
}

pub(crate) fn config(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"}, "data": {"mode": value}})
}

/// A work for `eu` with these manifests, and whatever else its spec has.
pub(crate) fn work(name: &str, manifests: &[Value], more: Value) -> Object {
    let mut spec = more;
    spec["workload"] = json!({"manifests": manifests});
    object(WORK_API, "ManifestWork", name)
        .namespace(EU)
        .with("/metadata/generation", json!(1))
        .spec(spec)
        .build()
}

/// `Type=Status/Reason` of an object's status or of one of its parts.
pub(crate) fn conditions(of: &Value) -> Vec<String> {
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entries = of["conditions"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|it| format!("{}={}/{}", word(it, "type"), word(it, "status"), word(it, "reason")))
        .collect()
}
