//! A small home: the controllers of pools, claims and pod budgets, and in place of everybody else
//! kubelets, a scheduler and a controller of pods that take no time.

use std::collections::BTreeSet;

use convoy_api::karpenter::names::{NODE_CLAIM, NODE_POOL};
use convoy_api::kinds::{NODE, POD};
use convoy_api::{Object, ObjectKey};
use convoy_check::{Applier, ApplyError, node_pools};
use convoy_plan::dialect::karpenter::{Gates, Operator};
use convoy_plan::dialect::workloads::PodDisruptionBudgets;
use convoy_plan::{Dialect, Step, World, Write};
use convoy_testkit::{Builder, NOW, karpenter, object};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Numbers from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound.max(1)
    }
}

pub(crate) struct Home {
    seed: u64,
    operator: Operator,
    applier: Applier,
    replicas: usize,
    template: u32,
    /// Pods made so far, for their names.
    made: u32,
    /// Nodes that are down by our doing.
    failed: BTreeSet<String>,
    /// Disruptions and evictions so far.
    pub(crate) seen: (usize, usize),
}

/// Rounds without rest after which something goes in circles.
const ROUNDS: u32 = 2_000;

impl Home {
    pub(crate) fn new(seed: u64, replicas: usize) -> Self {
        let disruption = json!({"consolidateAfter": "1m", "budgets": [{"nodes": "1"}]});
        let mut pool = karpenter::pool("default", &disruption);
        let machine = json!([{"key": "node.kubernetes.io/instance-type", "operator": "In",
            "values": ["c-2x-amd64-linux"]}]);
        pool = pool.with("/spec/template/spec/requirements", machine);
        if seed.is_multiple_of(4) {
            // As a pool is stored that was written as `v1beta1`.
            pool = pool.annotation("convoy.dev/default-budget", "unlisted");
        }
        if seed.is_multiple_of(3) {
            pool = pool.annotation("convoy.dev/budget-time-zone", "Europe/Berlin");
        }
        let class = object("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "default")
            .spec(json!({"nodeRegistrationDelay": "20s"}));
        let budget = object("policy/v1", "PodDisruptionBudget", "web")
            .namespace("default")
            .spec(json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}));
        let set = object("apps/v1", "ReplicaSet", "web")
            .namespace("default")
            .with("/metadata/uid", json!("rs"))
            .spec(json!({"replicas": replicas}));
        let world: World = [pool, class, budget, set].map(Builder::build).into_iter().collect();
        let applier = Applier::new(world, NOW.parse().expect("a constant"));
        Self {
            seed,
            operator: Operator::new(),
            applier,
            replicas,
            template: 0,
            made: 0,
            failed: BTreeSet::new(),
            seen: (0, 0),
        }
    }

    /// The same, where nodes that stay unhealthy are repaired.
    pub(crate) fn repairing(self) -> Self {
        let gates = Gates { node_repair: true, ..Gates::new() };
        Self { operator: Operator { gates }, ..self }
    }

    /// Whether every node is up.
    pub(crate) fn is_up(&self) -> bool {
        self.world().of(&NODE).all(|node| node.condition_status("Ready") == Some("True"))
    }

    fn world(&self) -> &World {
        self.applier.world()
    }

    fn pool(&self) -> Object {
        self.world().find(&NODE_POOL, "", "default").expect("the pool stays").clone()
    }

    pub(crate) fn change_template(&mut self) {
        self.template += 1;
        let labels = json!({"revision": self.template.to_string()});
        let key = self.pool().key().clone();
        self.applier
            .edit(&key, |raw| raw["spec"]["template"]["metadata"] = json!({"labels": labels}));
    }

    pub(crate) fn change_budgets(&mut self, budgets: Vec<Value>) {
        let key = self.pool().key().clone();
        self.applier.edit(&key, |raw| raw["spec"]["disruption"]["budgets"] = json!(budgets));
    }

    pub(crate) fn scale(&mut self, replicas: usize) {
        self.replicas = replicas;
        let sets = convoy_api::kinds::REPLICA_SET;
        let key = self.world().find(&sets, "default", "web").expect("it stays").key().clone();
        self.applier.edit(&key, |raw| raw["spec"]["replicas"] = json!(replicas));
    }

    pub(crate) fn fail_node(&mut self, at: usize) {
        let nodes: Vec<String> = self.world().of(&NODE).map(|it| it.name().to_string()).collect();
        self.failed.extend(nodes.get(at).cloned());
    }

    pub(crate) fn recover_nodes(&mut self) {
        self.failed.clear();
    }

    pub(crate) fn run_for_hours(&mut self, hours: u32) {
        let end = self.applier.now() + SignedDuration::from_hours(i64::from(hours));
        let mut rounds = 0;
        while self.applier.now() < end {
            let (is_quiet, next) = self.round();
            rounds += 1;
            assert!(rounds < ROUNDS, "seed {}: no rest by {}", self.seed, self.applier.now());
            if is_quiet {
                self.no_taint_is_left();
                rounds = 0;
                let next = next.filter(|at| *at > self.applier.now()).unwrap_or(end);
                self.applier.advance_to(next.min(end));
            } else {
                self.applier.advance_to(self.applier.now() + SignedDuration::from_secs(1));
            }
        }
    }

    /// Everybody once; whether nobody did anything, and when somebody will.
    fn round(&mut self) -> (bool, Option<Timestamp>) {
        let mut is_quiet = !self.machines();
        let mut next: Option<Timestamp> = None;
        let operator = self.operator;
        for dialect in [&PodDisruptionBudgets as &dyn Dialect, &operator] {
            let keys: Vec<ObjectKey> =
                dialect.rollouts(self.world()).iter().map(|it| it.key().clone()).collect();
            for key in keys {
                let Some(rollout) = self.world().get(&key).cloned() else { continue };
                let step =
                    dialect.step(&dialect.snapshot(self.world(), &rollout), self.applier.now());
                next = next.into_iter().chain(step.wake_at).min();
                is_quiet &= step.is_quiet();
                self.watched(&step);
            }
        }
        (is_quiet, next)
    }

    /// Applies a step and looks at what it did.
    fn watched(&mut self, step: &Step) {
        let evictions = step.actions.iter().filter(|it| matches!(it.write, Write::Evict { .. }));
        let allowed = self.ready_pods().saturating_sub(self.replicas.saturating_sub(1));
        let evicted = evictions.count();
        assert!(evicted <= allowed, "seed {}: {evicted} evictions, {allowed} allowed", self.seed);
        self.seen.1 += evicted;
        let before = self.disrupted();
        match self.applier.apply(step) {
            Ok(())
            | Err(ApplyError::Stale(_) | ApplyError::Exists(_) | ApplyError::NotFound(_)) => {}
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
        let after = self.disrupted();
        let down = self.down();
        self.seen.0 += after.difference(&before).count();
        // One step may start disruptions of several reasons, the one with the smallest limit first.
        let new = after.difference(&before);
        let mut new: Vec<_> = new.map(|start| (self.limit(&start.1), start)).collect();
        new.sort();
        let earlier = down.saturating_sub(new.len());
        for (at, (limit, (claim, reason))) in new.iter().enumerate() {
            let down = earlier + at + 1;
            assert!(
                down <= *limit,
                "seed {}: {claim} starts for {reason} at {} with {down} down, {limit} allowed",
                self.seed,
                self.applier.now()
            );
        }
    }

    /// Claims that are being disrupted, with the reason.
    fn disrupted(&self) -> BTreeSet<(String, String)> {
        let claims = self.world().of(&NODE_CLAIM);
        let reason = |claim: &Object| {
            let entry = claim.condition("DisruptionReason")?;
            Some((claim.name().to_string(), entry["reason"].as_str()?.to_owned()))
        };
        claims.filter_map(reason).collect()
    }

    /// Nodes that are down, as budgets count them.
    fn down(&self) -> usize {
        let members = node_pools::counted(self.world(), "default");
        members.into_iter().filter(|(claim, node)| node_pools::is_down(claim, node)).count()
    }

    /// The most nodes that may be down for a reason, worked out from the raw budgets.
    fn limit(&self, reason: &str) -> usize {
        let total = node_pools::counted(self.world(), "default").len();
        let total = u32::try_from(total).expect("a few nodes");
        let limit = node_pools::limit(&self.pool(), reason, total, self.applier.now());
        limit.map_or(usize::MAX, |limit| limit as usize)
    }

    fn ready_pods(&self) -> usize {
        let pods = self.world().of(&POD);
        pods.filter(|pod| !pod.is_deleting() && pod.condition_status("Ready") == Some("True"))
            .count()
    }

    fn no_taint_is_left(&self) {
        for node in self.world().of(&NODE) {
            let claim = self.world().find(&NODE_CLAIM, "", node.name());
            let is_going = claim.is_some_and(|claim| {
                claim.is_deleting() || claim.condition("DisruptionReason").is_some()
            });
            let is_tainted = node.has_taint("karpenter.sh/disrupted");
            assert!(is_going || !is_tainted, "seed {}: {} stays tainted", self.seed, node.name());
        }
    }

    /// Every claim is of the last template, every pod runs, and nothing is under way.
    pub(crate) fn is_at_rest(&self) {
        assert_eq!(self.ready_pods(), self.replicas, "seed {}", self.seed);
        assert_eq!(self.disrupted(), BTreeSet::new(), "seed {}", self.seed);
        let wanted = (self.template > 0).then(|| self.template.to_string());
        for claim in self.world().of(&NODE_CLAIM) {
            let revision = claim.label("revision");
            assert_eq!(revision, wanted.as_deref(), "seed {}: {}", self.seed, claim.name());
        }
    }

    /// Kubelets, the scheduler and the ReplicaSet; whether any of them did something.
    fn machines(&mut self) -> bool {
        let ran = self.kubelets();
        let changed = self.pods();
        let bound = self.bind();
        ran || changed || bound
    }

    fn kubelets(&mut self) -> bool {
        let nodes: Vec<Object> = self.world().of(&NODE).cloned().collect();
        // Another machine may get the name of one that is gone.
        self.failed.retain(|name| nodes.iter().any(|node| node.name() == name.as_str()));
        let now = self.applier.now().to_string();
        let mut changed = false;
        for node in nodes {
            let claim = self.world().find(&NODE_CLAIM, "", node.name());
            let room = claim.map_or(Value::Null, |claim| claim.status()["allocatable"].clone());
            let status = if self.failed.contains(node.name().as_str()) { "False" } else { "True" };
            if node.condition_status("Ready") == Some(status) {
                continue;
            }
            changed = true;
            self.applier.edit(node.key(), |raw| {
                raw["status"] = json!({"allocatable": room, "capacity": room,
                    "conditions": [{"type": "Ready", "status": status,
                        "lastTransitionTime": now}]});
            });
        }
        changed
    }

    fn pods(&mut self) -> bool {
        let pods: Vec<Object> = self.world().of(&POD).cloned().collect();
        let nodes: BTreeSet<String> =
            self.world().of(&NODE).map(|it| it.name().to_string()).collect();
        let lost = |pod: &&Object| {
            let node = pod.spec()["nodeName"].as_str();
            pod.is_deleting() || node.is_some_and(|node| !nodes.contains(node))
        };
        let gone: Vec<ObjectKey> = pods.iter().filter(lost).map(|pod| pod.key().clone()).collect();
        for key in &gone {
            self.applier.remove(key);
        }
        let left: Vec<ObjectKey> = self.world().of(&POD).map(|pod| pod.key().clone()).collect();
        for key in left.iter().skip(self.replicas) {
            self.applier.remove(key);
        }
        for _ in left.len()..self.replicas {
            self.made += 1;
            let pod = karpenter::pod(&format!("p{:06}", self.made), "", "900m")
                .with("/spec/nodeName", Value::Null)
                .status(json!({"phase": "Pending", "conditions":
                    [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}));
            self.applier.insert(pod.build());
        }
        !gone.is_empty() || left.len() != self.replicas
    }

    /// Binds pods to nodes of two cpus that are ready, untainted and have room.
    fn bind(&mut self) -> bool {
        let waiting: Vec<ObjectKey> = self
            .world()
            .of(&POD)
            .filter(|pod| pod.spec()["nodeName"].is_null())
            .map(|pod| pod.key().clone())
            .collect();
        let mut changed = false;
        for key in waiting {
            let on = |node: &Object| {
                let pods = self.world().of(&POD);
                pods.filter(|pod| pod.spec()["nodeName"] == node.name().as_str()).count()
            };
            let free = self.world().of(&NODE).find(|node| {
                let taints = node.spec()["taints"].as_array().is_none_or(Vec::is_empty);
                let is_ready = node.condition_status("Ready") == Some("True");
                taints && is_ready && !node.is_deleting() && on(node) < 2
            });
            let Some(name) = free.map(|node| node.name().to_string()) else { continue };
            changed = true;
            let now = self.applier.now().to_string();
            self.applier.edit(&key, |raw| {
                raw["spec"]["nodeName"] = json!(name);
                raw["status"] = json!({"phase": "Running", "startTime": now, "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
                    {"type": "Ready", "status": "True"}]});
            });
        }
        changed
    }
}
