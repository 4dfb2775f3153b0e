//! A NodePool under trial: people who change its template and budgets and delete claims and pods,
//! and processes that end between any two writes. After every write no more nodes are disrupted than
//! the budget lets, no pod is evicted against its PodDisruptionBudget, and in the end every node is
//! of the newest template and none is left tainted.

use std::collections::BTreeMap;

use convoy_api::karpenter::names::{DISRUPTED_TAINT, NODE_CLAIM, label};
use convoy_api::kinds::{NODE, POD, POD_DISRUPTION_BUDGET};
use convoy_api::object::member::{list, text};
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::ReplicaSets;
use convoy_plan::dialect::workloads::PodDisruptionBudgets;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::cluster::{Author, Cluster, WriteRecord};
use super::pools::{self, OPERATOR, POOLS, REVISION};
use super::random::Random;
use super::trial::FaultPhases;
use super::{RunSettings, Trial};
use crate::scenario::Scenario;
use crate::seed::Seed;

/// Where the pods are whose nodes the pool gives.
pub(super) const NAMESPACE: &str = "pooled";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const PODS: &str = "/api/v1/namespaces/pooled/pods";

/// A pool with a pod on each node, and what befalls it.
#[derive(Debug)]
pub struct Disruptions {
    /// Whether nobody else runs ReplicaSets.
    is_alone: bool,
    pods: usize,
    /// How many pods may be missing.
    unavailable_max: usize,
    budget: Budget,
    /// Nodes that the pool is allowed beyond what is checked: such a trial has to fail.
    excess: usize,
    /// The revision of the template.
    revision: u32,
    objects: BTreeMap<ObjectKey, Object>,
    /// The most nodes that could be disrupted at some time since the loops last settled.
    allowed: usize,
    /// Claims that people deleted since then: a loop may not know of them yet.
    deleted: usize,
    /// Pods that others took away, or that failed, since then.
    lost: usize,
}

/// How many nodes may be disrupted.
#[derive(Clone, Copy, Debug)]
enum Budget {
    Count(usize),
    Percent(usize),
}

impl Budget {
    fn random(random: &mut Random) -> Self {
        let number = |value: i64| usize::try_from(value).unwrap_or(0);
        if random.happens(500) {
            Self::Count(number(random.between(0, 2)))
        } else {
            Self::Percent(number(random.between(0, 4)) * 25)
        }
    }

    /// As the pool has it, with so many nodes more.
    fn nodes(self, excess: usize) -> String {
        match self {
            Self::Count(count) => (count + excess).to_string(),
            Self::Percent(percent) => format!("{percent}%"),
        }
    }

    /// Percentages are rounded up.
    fn of(self, nodes: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (nodes * percent).div_ceil(100),
        }
    }
}

impl Disruptions {
    /// A trial and its settings, as a seed has it.
    pub fn from_seed(seed: u64) -> (Self, RunSettings) {
        let mut random = Random::new(Seed::new(seed).child("trial", "disruptions"));
        let phases =
            FaultPhases { short: (20_000, 90_000), long: (90_000, 300_000), long_ones: 100 };
        let settings = RunSettings {
            settle_timeout: SignedDuration::from_hours(2),
            outages: None,
            ..RunSettings::disturbed(&mut random, phases)
        };
        let pods = usize::try_from(random.between(1, 5)).unwrap_or(1);
        let trial = Self {
            is_alone: true,
            pods,
            unavailable_max: usize::try_from(random.between(1, 2)).unwrap_or(1),
            budget: Budget::random(&mut random),
            excess: 0,
            revision: 1,
            objects: BTreeMap::new(),
            allowed: 0,
            deleted: 0,
            lost: 0,
        };
        (trial, settings)
    }

    /// The same with a pool that is allowed one node more than is checked.
    #[must_use]
    pub fn lenient(self) -> Self {
        let (pods, budget) = (self.pods.max(3), Budget::Count(1));
        Self { excess: 1, pods, budget, ..self }
    }

    /// The same in a world where others run ReplicaSets.
    #[must_use]
    pub(super) fn beside_others(self) -> Self {
        Self { is_alone: false, ..self }
    }

    /// Whether a trial of a pool looks at an object.
    pub(super) fn owns(object: &Object) -> bool {
        let key = object.key();
        let is_workload = *object.kind() == POD || key.namespace == NAMESPACE;
        let is_node = *object.kind() == NODE && object.label(label::NODE_POOL).is_some();
        let is_known = key.kind.group.starts_with("karpenter.");
        key.cluster.is_empty() && (is_workload || is_node || is_known)
    }

    fn of(&self, kind: GroupKind) -> impl Iterator<Item = &Object> {
        self.objects.values().filter(move |object| *object.kind() == kind)
    }

    fn own_pods(&self) -> impl Iterator<Item = &Object> {
        self.of(POD).filter(|pod| *pod.namespace() == NAMESPACE)
    }

    fn healthy(&self) -> usize {
        self.own_pods().filter(|pod| is_healthy(pod)).count()
    }

    /// Budgets count nodes that are initialized.
    fn disrupted(&self) -> usize {
        let is_leaving = |claim: &&Object| {
            let is = |kind: &str| claim.condition_status(kind) == Some("True");
            let node = self.objects.get(&NODE.key("", claim.status_text("nodeName")));
            let is_there = node.is_some_and(is_initialized);
            is_there
                && (claim.is_deleting() || is("DisruptionReason"))
                && !is("InstanceTerminating")
        };
        self.of(NODE_CLAIM).filter(is_leaving).count()
    }

    /// How many nodes may be disrupted now, failed ones left out of account.
    fn allowed_now(&self) -> usize {
        self.budget.of(self.of(NODE).filter(|node| is_initialized(node)).count())
    }

    fn template(&self) -> Value {
        pools::template(&json!({REVISION: format!("r{}", self.revision)}))
    }

    fn patched(body: Value) -> Request {
        Request::merge(&format!("{POOLS}/default"), json!({"spec": body}))
    }

    fn change_budget(&mut self, budget: Budget) -> Request {
        self.budget = budget;
        self.allowed = self.allowed.max(self.allowed_now());
        Self::patched(json!({"disruption": {"budgets": [{"nodes": budget.nodes(self.excess)}]}}))
    }

    fn change_template(&mut self) -> Request {
        self.revision += 1;
        Self::patched(json!({"template": self.template()}))
    }

    fn see_claims(&mut self, record: &WriteRecord, before: usize) -> Result<(), String> {
        let disrupted = self.disrupted();
        if record.by != Author::Controller {
            self.deleted += disrupted.saturating_sub(before);
            return Ok(());
        }
        let allowed = self.allowed + self.deleted;
        if disrupted > before.max(allowed) {
            return Err(format!("{disrupted} nodes are disrupted, {allowed} may be"));
        }
        Ok(())
    }

    fn see_pods(&mut self, record: &WriteRecord, before: usize) -> Result<(), String> {
        let healthy = self.healthy();
        if healthy >= before {
            return Ok(());
        }
        if record.by != Author::Controller {
            self.lost += before - healthy;
            return Ok(());
        }
        let least = self.pods.saturating_sub(self.unavailable_max + self.lost);
        if healthy < least {
            return Err(format!("an eviction leaves {healthy} pods, {least} are to stay"));
        }
        Ok(())
    }
}

/// Whether a node is kept free because it is about to go.
pub(super) fn is_tainted(node: &Object) -> bool {
    list(node.spec(), "taints").iter().any(|taint| text(taint, "key") == DISRUPTED_TAINT)
}

fn is_initialized(node: &Object) -> bool {
    node.label(label::INITIALIZED) == Some("true")
}

fn is_healthy(pod: &Object) -> bool {
    !pod.is_deleting() && pod.condition_status("Ready") == Some("True")
}

/// What matters of an object, for people who look for a fault.
pub(super) fn summary(object: &Object) -> String {
    let conditions = list(object.status(), "conditions").iter();
    let holding = conditions.filter(|it| text(it, "status") == "True").map(|it| text(it, "type"));
    let going = if object.is_deleting() { " going" } else { "" };
    match object.kind() {
        kind if *kind == NODE_CLAIM => {
            let revision = object.label(REVISION).unwrap_or("-");
            format!(" {revision}{going} {:?}", holding.collect::<Vec<_>>())
        }
        kind if *kind == NODE => {
            let taints = list(object.spec(), "taints").iter().map(|taint| text(taint, "key"));
            format!("{going} {:?}", taints.collect::<Vec<_>>())
        }
        kind if *kind == POD_DISRUPTION_BUDGET => format!(" {}", object.status()),
        kind if kind.kind == "NodePool" => format!(" {}", object.spec()["disruption"]["budgets"]),
        _ => String::new(),
    }
}

impl Trial for Disruptions {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        if self.is_alone {
            vec![vec![&ReplicaSets, &PodDisruptionBudgets, &OPERATOR]]
        } else {
            vec![vec![&PodDisruptionBudgets, &OPERATOR]]
        }
    }

    fn scenario(&self) -> Scenario {
        pools::machines()
    }

    fn begin(&mut self) -> Vec<Request> {
        let pool = json!({"metadata": {"name": "default"}, "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s",
                "budgets": [{"nodes": self.budget.nodes(self.excess)}]},
            "template": self.template()}});
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        let mut requests = vec![Request::create("/api/v1/namespaces", namespace)];
        let unavailable_max = json!(self.unavailable_max);
        requests.extend(pools::objects(NAMESPACE, pool, self.pods, &unavailable_max));
        requests
    }

    fn act(&mut self, random: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        let any = |objects: Vec<&Object>, random: &mut Random| {
            random.pick(&objects).map(|object| object.name().to_string())
        };
        let request = match random.between(0, 7) {
            0..=2 => Some(self.change_template()),
            3..=4 => Some(self.change_budget(Budget::random(random))),
            5 => any(self.own_pods().collect(), random)
                .map(|name| Request::delete(format!("{PODS}/{name}"))),
            6 => any(self.of(NODE_CLAIM).collect(), random)
                .map(|name| Request::delete(format!("{CLAIMS}/{name}"))),
            _ => None,
        };
        request.into_iter().collect()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        vec![self.change_budget(Budget::Percent(100)), self.change_template()]
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let (disrupted, healthy) = (self.disrupted(), self.healthy());
        let object = &record.object;
        if record.is_deletion() {
            self.objects.remove(object.key());
        } else {
            self.objects.insert(object.key().clone(), object.clone());
        }
        self.allowed = self.allowed.max(self.allowed_now());
        match object.kind() {
            kind if *kind == NODE_CLAIM => self.see_claims(record, disrupted),
            kind if *kind == POD => self.see_pods(record, healthy),
            _ => Ok(()),
        }
    }

    fn rest(&mut self, _now: Timestamp) {
        (self.allowed, self.deleted) = (self.allowed_now(), 0);
        self.lost = self.pods.saturating_sub(self.healthy());
    }

    fn is_complete(&self) -> Result<(), String> {
        let newest = format!("r{}", self.revision);
        let has_pod = |name: &str| self.of(POD).any(|pod| pod.spec_text("nodeName") == name);
        for claim in self.of(NODE_CLAIM) {
            if claim.is_deleting() || claim.label(REVISION) != Some(newest.as_str()) {
                return Err(format!("{} is there, and not of template {newest}", claim.key()));
            }
            if !has_pod(claim.status_text("nodeName")) {
                return Err(format!("{} is empty", claim.key()));
            }
            // Comes with time, and is written then.
            if claim.condition_status("Consolidatable") != Some("True") {
                return Err(format!("{} was changed a short while ago", claim.key()));
            }
        }
        if let Some(node) = self.of(NODE).find(|node| is_tainted(node)) {
            return Err(format!("{} is left tainted", node.key()));
        }
        let (healthy, wanted) = (self.healthy(), self.pods);
        if healthy != wanted {
            return Err(format!("{healthy} of {wanted} pods are ready"));
        }
        Ok(())
    }
}
