//! A hub and its members in one world: the hub's controller, an agent for each member, and
//! something that makes workloads run.

use convoy_api::kinds::DEPLOYMENT;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_check::{Applier, ApplyError, check};
use convoy_plan::dialect::fleet::Fleet;
use convoy_plan::dialect::fleet_agent::{AgentTimings, FleetAgent};
use convoy_plan::step::EventType;
use convoy_plan::{Denial, Dialect, Step, World, complain, decide, plan};
use convoy_testkit::{NOW, object};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) const PLACEMENT_API: &str = "placement.kubernetes-fleet.io/v1beta1";
const CLUSTER_API: &str = "cluster.kubernetes-fleet.io/v1beta1";
pub(crate) const WORK: GroupKind = GroupKind::new("placement.kubernetes-fleet.io", "Work");
pub(crate) const APPLIED_WORK: GroupKind =
    GroupKind::new("placement.kubernetes-fleet.io", "AppliedWork");

pub(crate) fn now() -> Timestamp {
    NOW.parse().expect("a fixed instant")
}

pub(crate) fn on(member: &str, kind: &GroupKind, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { cluster: member.into(), ..kind.key(namespace, name) }
}

/// The hub, its members, and the time.
pub(crate) struct Site {
    pub(crate) applier: Applier,
    agents: Vec<FleetAgent>,
    pub(crate) has_hub: bool,
    /// The messages of Warning events about denied writes.
    pub(crate) complaints: Vec<String>,
}

impl Site {
    pub(crate) fn new(objects: Vec<Object>, members: &[&str]) -> Self {
        let world: World = objects.into_iter().collect();
        let agents = members.iter().map(|member| FleetAgent::new(*member)).collect();
        let applier = Applier::new(world, now());
        Self { applier, agents, has_hub: true, complaints: Vec::new() }
    }

    /// One member whose hub only holds Works.
    pub(crate) fn of_agent(objects: Vec<Object>, member: &str) -> Self {
        let internal = object(CLUSTER_API, "InternalMemberCluster", member)
            .namespace(&format!("fleet-member-{member}"))
            .spec(json!({"state": "Join", "heartbeatPeriodSeconds": 60}))
            .build();
        let objects = objects.into_iter().chain([internal]).collect();
        Self { has_hub: false, ..Self::new(objects, &[member]) }
    }

    /// The same with other waits of the agents.
    pub(crate) fn waiting(mut self, timings: AgentTimings) -> Self {
        self.agents = self.agents.into_iter().map(|agent| agent.with(timings)).collect();
        self
    }

    pub(crate) fn world(&self) -> &World {
        self.applier.world()
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> &Object {
        self.world().get(key).unwrap_or_else(|| panic!("{key} is missing"))
    }

    pub(crate) fn edit(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Value)) {
        self.applier.edit(key, change);
    }

    /// The steps of the hub and of all agents, as of now.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let hub: &dyn Dialect = &Fleet;
        let hub = self.has_hub.then_some(hub);
        let agents = self.agents.iter().map(|agent| -> &dyn Dialect { agent });
        let mut steps = Vec::new();
        for dialect in hub.into_iter().chain(agents) {
            for rollout in dialect.rollouts(self.world()) {
                steps.extend(decide(dialect, self.world(), &[], rollout.key(), self.applier.now()));
            }
        }
        steps
    }

    /// One round: everybody decides and writes. Whether anything was written.
    pub(crate) fn round(&mut self) -> bool {
        let steps = self.steps();
        if self.has_hub {
            let plan = plan(self.world(), self.applier.now());
            assert_eq!(check(self.world(), &plan), [], "the guarantees hold in every round");
        }
        let mut busy = false;
        for step in &steps {
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
        let denied = step.actions.iter().position(|action| action.target == target);
        let agents = self.agents.iter().map(|agent| -> &dyn Dialect { agent });
        let mut dialects = agents.chain([&Fleet as &dyn Dialect]);
        let owns = |dialect: &&dyn Dialect| {
            dialect.name() == step.dialect
                && dialect.is_rollout(self.world(), self.get(&step.rollout))
        };
        let dialect = dialects.find(owns).expect("the dialect that decided");
        let denial = Denial { target, verb: "apply", message };
        let (world, now) = (self.world(), self.applier.now());
        let complaint = complain(dialect, world, &[], &step.rollout, &denial, now);
        let complaint = complaint.expect("the rollout is there");
        assert_eq!(complaint.event.kind, EventType::Warning);
        let told = complaint.status.filter(|status| status != self.get(&step.rollout).status());
        let is_news = told.is_some();
        if let Some(status) = told {
            self.applier.edit(&step.rollout, |raw| raw["status"] = status);
        }
        self.complaints.push(complaint.event.message);
        is_news || denied.is_some_and(|at| at > 0)
    }

    /// Rounds until nobody writes; time stands still.
    pub(crate) fn settle(&mut self) {
        for _ in 0..60 {
            if !self.round() {
                return;
            }
        }
        let busy: Vec<String> = self
            .steps()
            .iter()
            .filter(|step| !step.is_quiet())
            .map(|step| format!("{:#}", step.to_json()))
            .collect();
        panic!("still writing: {}", busy.join("\n"));
    }

    /// Rounds and time, until something holds.
    pub(crate) fn run_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..40 {
            self.settle();
            if holds(self) {
                return;
            }
            let wakes = self.steps().into_iter().filter_map(|step| step.wake_at);
            let next = wakes.filter(|at| *at > self.applier.now()).min();
            self.applier.advance_to(next.expect("something is awaited"));
        }
        panic!("never {what}");
    }

    /// Deployments run at once, unless their image is bad.
    fn run_workloads(&mut self) -> bool {
        let members = self.world().iter().filter(|object| !object.key().cluster.is_empty());
        let all: Vec<Object> = members.filter(|it| *it.kind() == DEPLOYMENT).cloned().collect();
        let mut changed = false;
        for deployment in all {
            let image = &deployment.spec()["template"]["spec"]["containers"][0]["image"];
            let replicas = deployment.spec()["replicas"].as_i64().unwrap_or(1);
            let bad = image == "bad";
            let good = if bad { 0 } else { replicas };
            let status = json!({"observedGeneration": deployment.generation(),
                "availableReplicas": good, "updatedReplicas": replicas,
                "unavailableReplicas": replicas - good});
            if *deployment.status() != status {
                self.applier.edit(deployment.key(), |raw| raw["status"] = status);
                changed = true;
            }
        }
        changed
    }
}

pub(crate) fn member(name: &str) -> Object {
    let identity = json!({"kind": "User", "name": format!("agent-{name}")});
    object(CLUSTER_API, "MemberCluster", name).spec(json!({"identity": identity})).build()
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

/// A Work with these manifests, whose apply strategy has these fields.
pub(crate) fn work(name: &str, manifests: &[Value], strategy: &Value) -> Object {
    object(PLACEMENT_API, "Work", name)
        .namespace("fleet-member-eu")
        .with("/metadata/generation", json!(1))
        .spec(json!({"workload": {"manifests": manifests}, "applyStrategy": strategy}))
        .build()
}

/// `Type=Status/Reason` of an object or of one of its parts.
pub(crate) fn conditions(of: &Value) -> Vec<String> {
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entries = of["conditions"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|it| format!("{}={}/{}", word(it, "type"), word(it, "status"), word(it, "reason")))
        .collect()
}
