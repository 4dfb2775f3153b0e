//! A NodePool under trial: people who change its template and budgets and delete claims and pods,
//! and processes that end between any two writes. After every write no more nodes are disrupted than
//! the budgets let for the reason, no pod is evicted against its PodDisruptionBudget, and in the end
//! every node is of the newest template and none is left tainted.

mod budgets;

use std::collections::BTreeMap;

use budgets::{Budgets, REASONS};
use convoy_api::karpenter::names::{DISRUPTED_TAINT, NODE_CLAIM, annotation, label};
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

/// One of them is half an hour off the others, so that windows of an hour begin elsewhere in it.
const ZONES: [&str; 3] = ["UTC", "Europe/Berlin", "Asia/Kolkata"];
const POLICIES: [&str; 2] = ["WhenEmpty", "WhenEmptyOrUnderutilized"];

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
    budgets: Budgets,
    /// The time zone of their windows.
    zone: &'static str,
    policy: &'static str,
    /// Nodes that the pool is allowed beyond what is checked: such a trial has to fail.
    excess: i64,
    /// The revision of the template.
    revision: u32,
    objects: BTreeMap<ObjectKey, Object>,
    /// By reason: the most nodes that could be disrupted at some time since the loops last settled.
    allowed: BTreeMap<&'static str, usize>,
    /// Claims that people deleted since then: a loop may not know of them yet.
    deleted: usize,
    /// Pods that others took away, or that failed, since then.
    lost: usize,
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
            budgets: Budgets::random(&mut random),
            zone: random.pick(&ZONES).copied().unwrap_or_default(),
            policy: random.pick(&POLICIES).copied().unwrap_or_default(),
            excess: 0,
            revision: 1,
            objects: BTreeMap::new(),
            allowed: BTreeMap::new(),
            deleted: 0,
            lost: 0,
        };
        (trial, settings)
    }

    /// The same with a pool that is allowed one node more than is checked.
    #[must_use]
    pub fn lenient(self) -> Self {
        let (pods, budgets) = (self.pods.max(3), Budgets::count(1));
        Self { excess: 1, pods, budgets, ..self }
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

    /// Notes how many nodes may be disrupted now, failed ones left out of account.
    fn note_allowed(&mut self, now: Timestamp) {
        let total = self.of(NODE).filter(|node| is_initialized(node)).count();
        for reason in REASONS {
            let allowed = self.budgets.allowed(reason, self.zone, total, now);
            let known = self.allowed.entry(reason).or_default();
            *known = allowed.max(*known);
        }
    }

    fn template(&self) -> Value {
        pools::template(&json!({REVISION: format!("r{}", self.revision)}))
    }

    fn patched(body: Value) -> Request {
        Request::merge(&format!("{POOLS}/default"), json!({"spec": body}))
    }

    fn change_budgets(&mut self, budgets: Budgets, now: Timestamp) -> Request {
        self.budgets = budgets;
        self.note_allowed(now);
        Self::patched(json!({"disruption": {"budgets": self.budgets.to_json(self.excess)}}))
    }

    fn change_template(&mut self) -> Request {
        self.revision += 1;
        Self::patched(json!({"template": self.template()}))
    }

    /// A claim was written; before, so many nodes were disrupted. `begins` is the reason for which
    /// its disruption begins with that.
    fn see_claims(
        &mut self,
        record: &WriteRecord,
        before: usize,
        begins: Option<&str>,
    ) -> Result<(), String> {
        let disrupted = self.disrupted();
        if record.by != Author::Controller {
            self.deleted += disrupted.saturating_sub(before);
            return Ok(());
        }
        let most = || self.allowed.values().copied().max();
        let allowed = begins.and_then(|reason| self.allowed.get(reason).copied()).or_else(most);
        let allowed = allowed.unwrap_or(0) + self.deleted + self.beside(&record.object);
        if disrupted > before.max(allowed) {
            let reason = begins.unwrap_or("any reason");
            return Err(format!("{disrupted} nodes are disrupted, {allowed} may be for {reason}"));
        }
        Ok(())
    }

    /// How many claims one decision disrupts for other reasons than this one: the order of its
    /// writes is not that in which it takes the budgets.
    fn beside(&self, claim: &Object) -> usize {
        let since = |claim: &Object| {
            Some(text(claim.condition("DisruptionReason")?, "lastTransitionTime").to_owned())
        };
        let is_beside =
            |other: &&Object| reason(other) != reason(claim) && since(other) == since(claim);
        let begun = self.of(NODE_CLAIM).filter(|other| reason(other).is_some());
        begun.filter(is_beside).count()
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

/// The reason for which a claim is being disrupted.
fn reason(claim: &Object) -> Option<&str> {
    let entry = claim.condition("DisruptionReason")?;
    (text(entry, "status") == "True").then(|| text(entry, "reason"))
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
        let annotations = json!({annotation::TIME_ZONE: self.zone});
        let pool = json!({"metadata": {"name": "default", "annotations": annotations}, "spec": {
            "disruption": {"consolidationPolicy": self.policy, "consolidateAfter": "30s",
                "budgets": self.budgets.to_json(self.excess)},
            "template": self.template()}});
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        let mut requests = vec![Request::create("/api/v1/namespaces", namespace)];
        let unavailable_max = json!(self.unavailable_max);
        requests.extend(pools::objects(NAMESPACE, pool, self.pods, &unavailable_max));
        requests
    }

    fn act(&mut self, random: &mut Random, cluster: &mut Cluster) -> Vec<Request> {
        let any = |objects: Vec<&Object>, random: &mut Random| {
            random.pick(&objects).map(|object| object.name().to_string())
        };
        let request = match random.between(0, 7) {
            0..=2 => Some(self.change_template()),
            3..=4 => Some(self.change_budgets(Budgets::random(random), cluster.now())),
            5 => any(self.own_pods().collect(), random)
                .map(|name| Request::delete(format!("{PODS}/{name}"))),
            6 => any(self.of(NODE_CLAIM).collect(), random)
                .map(|name| Request::delete(format!("{CLAIMS}/{name}"))),
            _ => None,
        };
        request.into_iter().collect()
    }

    fn end(&mut self, cluster: &mut Cluster) -> Vec<Request> {
        vec![self.change_budgets(Budgets::all(), cluster.now()), self.change_template()]
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let (disrupted, healthy) = (self.disrupted(), self.healthy());
        let object = &record.object;
        let known = self.objects.get(object.key());
        let is_known = known.is_some_and(|known| reason(known).is_some());
        let begins = reason(object).filter(|_| !is_known);
        if record.is_deletion() {
            self.objects.remove(object.key());
        } else {
            self.objects.insert(object.key().clone(), object.clone());
        }
        self.note_allowed(record.at);
        match object.kind() {
            kind if *kind == NODE_CLAIM => self.see_claims(record, disrupted, begins),
            kind if *kind == POD => self.see_pods(record, healthy),
            _ => Ok(()),
        }
    }

    fn rest(&mut self, now: Timestamp) {
        self.allowed.clear();
        self.note_allowed(now);
        self.deleted = 0;
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
