//! A hub and its members in one world: the hub's controllers, an agent for each member, and
//! something that makes workloads run.

use convoy_api::kinds::DEPLOYMENT;
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, ApplyError, check};
use convoy_plan::step::EventType;
use convoy_plan::{Denial, Dialect, Step, World, complain, decide, plan};
use convoy_testkit::NOW;
use serde_json::{Value, json};

/// The hub, its members, and the time.
pub(crate) struct Site<A> {
    pub(crate) applier: Applier,
    pub(crate) agents: Vec<A>,
    /// `None`: the hub only holds what the agents read.
    pub(crate) hub: Option<Box<dyn Dialect>>,
    /// The messages of Warning events about denied writes.
    pub(crate) complaints: Vec<String>,
}

impl<A: Dialect> Site<A> {
    pub(crate) fn with(
        objects: Vec<Object>,
        hub: Option<Box<dyn Dialect>>,
        agents: Vec<A>,
    ) -> Self {
        let now = NOW.parse().expect("a fixed instant");
        let applier = Applier::new(objects.into_iter().collect(), now);
        Self { applier, agents, hub, complaints: Vec::new() }
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

    fn dialects(&self) -> impl Iterator<Item = &dyn Dialect> {
        self.hub
            .as_deref()
            .into_iter()
            .chain(self.agents.iter().map(|agent| -> &dyn Dialect { agent }))
    }

    /// The steps of the hub and of all agents, as of now.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for dialect in self.dialects() {
            for rollout in dialect.rollouts(self.world()) {
                steps.extend(decide(dialect, self.world(), &[], rollout.key(), self.applier.now()));
            }
        }
        steps
    }

    /// One round: everybody decides and writes. Whether anything was written.
    pub(crate) fn round(&mut self) -> bool {
        if self.hub.is_some() {
            let plan = plan(self.world(), self.applier.now());
            assert_eq!(check(self.world(), &plan), [], "the guarantees hold in every round");
        }
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

    /// Tells about a denied write as the control loop does. Whether anything was written.
    fn complain(&mut self, step: &Step, target: ObjectKey, message: String) -> bool {
        let denied = step.actions.iter().position(|action| action.target == target);
        let rollout = self.get(&step.rollout);
        let decided = |dialect: &&dyn Dialect| {
            dialect.name() == step.dialect && dialect.is_rollout(self.world(), rollout)
        };
        let dialect = self.dialects().find(decided).expect("the dialect that decided");
        let denial = Denial { target, verb: "apply", message };
        let (world, now) = (self.world(), self.applier.now());
        let complaint = complain(dialect, world, &[], &step.rollout, &denial, now);
        let complaint = complaint.expect("the rollout is there");
        assert_eq!(complaint.event.kind, EventType::Warning);
        let told = complaint.status.filter(|status| status != rollout.status());
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
        let busy = self.steps().into_iter().filter(|step| !step.is_quiet());
        let busy: Vec<String> = busy.map(|step| format!("{:#}", step.to_json())).collect();
        panic!("still writing: {}", busy.join("\n"));
    }

    /// Deployments of members run at once, unless their image is bad.
    fn run_workloads(&mut self) -> bool {
        let members = self.world().iter().filter(|object| !object.key().cluster.is_empty());
        let all: Vec<Object> = members.filter(|it| *it.kind() == DEPLOYMENT).cloned().collect();
        let mut changed = false;
        for deployment in all {
            let image = &deployment.spec()["template"]["spec"]["containers"][0]["image"];
            let replicas = deployment.spec()["replicas"].as_i64().unwrap_or(1);
            let good = if image == "bad" { 0 } else { replicas };
            let status = json!({"observedGeneration": deployment.generation(),
                "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": good,
                "availableReplicas": good, "unavailableReplicas": replicas - good});
            if *deployment.status() != status {
                self.applier.edit(deployment.key(), |raw| raw["status"] = status);
                changed = true;
            }
        }
        changed
    }
}
