//! A drift rehearsed: a NodePool of any size gets its nodes and pods, then its template changes and
//! every node is replaced, in virtual time and with nothing in its way. The budget is looked at
//! after every write.

use std::collections::BTreeSet;

use convoy_api::karpenter::names::{NODE_CLAIM, label};
use convoy_api::kinds::POD;
use convoy_api::well_known::label::INSTANCE_TYPE;
use convoy_controllers::request::Request;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::ReplicaSets;
use convoy_plan::dialect::karpenter::{Gates, Operator};
use convoy_plan::dialect::workloads::PodDisruptionBudgets;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::cluster::{Cluster, WriteRecord};
use super::random::Random;
use super::{RunSettings, Trial};
use crate::scenario::Scenario;

pub(super) static OPERATOR: Operator = Operator { gates: Gates::new() };
pub(super) const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
const CLASSES: &str = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses";
/// The label that the second template has.
pub(super) const REVISION: &str = "revision";
/// Budgets that a pool may have.
const BUDGETS_MAX: usize = 50;

/// A pool of so many nodes, with a pod on each.
#[derive(Debug)]
pub struct PoolRehearsal {
    nodes: usize,
    claims: BTreeSet<String>,
    /// Claims that are initialized, and those of them that are of the second template.
    initialized: BTreeSet<String>,
    current: BTreeSet<String>,
    /// Claims that budgets count: their disruption has begun, and their machine has not ended.
    disrupted: BTreeSet<String>,
    ready_pods: BTreeSet<String>,
    has_drifted: bool,
    /// Called once all nodes are there, before the template changes.
    when_provisioned: fn(),
}

impl PoolRehearsal {
    pub fn new(nodes: u32, when_provisioned: fn()) -> (Self, RunSettings) {
        let trial = Self {
            nodes: usize::try_from(nodes).unwrap_or(usize::MAX),
            claims: BTreeSet::new(),
            initialized: BTreeSet::new(),
            current: BTreeSet::new(),
            disrupted: BTreeSet::new(),
            ready_pods: BTreeSet::new(),
            has_drifted: false,
            when_provisioned,
        };
        (trial, RunSettings::undisturbed())
    }

    /// A tenth of the nodes that are there, replacements among them, rounded up.
    fn allowed(&self) -> usize {
        self.initialized.len().div_ceil(10)
    }

    /// All nodes of the first template are there, and nothing has changed yet.
    fn is_provisioned(&self) -> bool {
        self.ready_pods.len() == self.nodes && self.initialized.len() == self.nodes
    }
}

/// The machines of pools: they come up at once, and pods take a moment.
pub(super) fn machines() -> Scenario {
    let text = json!({"seed": 1, "heartbeat": "5m",
        "latencies": {"pull": "0s", "start": "0s", "ready": "1s..5s", "stop": "0s..2s"}});
    Scenario::from_yaml(&text.to_string()).expect("the text above is a scenario")
}

/// The template of a pool of machines on which one pod of [`objects`] has room.
pub(super) fn template(labels: &Value) -> Value {
    let machine = json!({"key": INSTANCE_TYPE, "operator": "In",
        "values": ["c-2x-amd64-linux"]});
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    json!({"metadata": {"labels": labels}, "spec": {"expireAfter": "Never",
        "requirements": [machine], "nodeClassRef": class}})
}

/// A pool, and so many pods in a namespace that go to its nodes, with their budget.
pub(super) fn objects(
    namespace: &str,
    pool: Value,
    pods: usize,
    unavailable_max: &Value,
) -> Vec<Request> {
    let labels = json!({"app": "pooled"});
    let container = json!({"name": "web", "image": "example/web:1",
        "resources": {"requests": {"cpu": "1500m"}}});
    let pod = json!({"containers": [container], "nodeSelector": {label::NODE_POOL: "default"}});
    let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": pods,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod}}});
    let budget = json!({"metadata": {"name": "web"}, "spec": {
        "maxUnavailable": unavailable_max, "selector": {"matchLabels": labels}}});
    let path = |api: &str, plural: &str| format!("/apis/{api}/namespaces/{namespace}/{plural}");
    vec![
        Request::create(CLASSES, json!({"metadata": {"name": "default"}})),
        Request::create(POOLS, pool),
        Request::create(&path("policy/v1", "poddisruptionbudgets"), budget),
        Request::create(&path("apps/v1", "replicasets"), set),
    ]
}

/// One that counts, and as many others as a pool may have, each with a window of its own.
fn budgets() -> Vec<Value> {
    let mut budgets = vec![json!({"nodes": "10%"})];
    let others = (1..BUDGETS_MAX).map(|at| {
        let schedule = format!("{} {} * * *", at % 60, at % 24);
        json!({"nodes": "100%", "schedule": schedule, "duration": "1h"})
    });
    budgets.extend(others);
    budgets
}

impl Trial for PoolRehearsal {
    fn loops(&self) -> Vec<Vec<&'static dyn Dialect>> {
        vec![vec![&ReplicaSets, &PodDisruptionBudgets, &OPERATOR]]
    }

    fn scenario(&self) -> Scenario {
        machines()
    }

    fn begin(&mut self) -> Vec<Request> {
        let pool = json!({"metadata": {"name": "default"}, "spec": {
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never",
                "budgets": budgets()},
            "template": template(&json!({}))}});
        objects("default", pool, self.nodes, &json!("10%"))
    }

    fn act(&mut self, _random: &mut Random, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn end(&mut self, _cluster: &mut Cluster) -> Vec<Request> {
        Vec::new()
    }

    fn see(&mut self, record: &WriteRecord) -> Result<(), String> {
        let (object, is_there) = (&record.object, !record.is_deletion());
        let is = |kind: &str| object.condition_status(kind) == Some("True");
        let keep = |set: &mut BTreeSet<String>, is_in: bool| {
            if is_in {
                set.insert(object.name().to_string());
            } else {
                set.remove(object.name().as_str());
            }
        };
        if *object.kind() == POD {
            keep(&mut self.ready_pods, is_there && !object.is_deleting() && is("Ready"));
        } else if *object.kind() == NODE_CLAIM {
            let is_initialized = is_there && is("Initialized") && !is("InstanceTerminating");
            let is_current = object.label(REVISION) == Some("two");
            let is_leaving = object.is_deleting() || is("DisruptionReason");
            keep(&mut self.claims, is_there);
            keep(&mut self.initialized, is_initialized);
            keep(&mut self.current, is_initialized && is_current);
            let before = self.disrupted.len();
            keep(&mut self.disrupted, is_there && is_leaving && !is("InstanceTerminating"));
            let (disrupted, allowed) = (self.disrupted.len(), self.allowed());
            if disrupted > before.max(allowed) {
                return Err(format!("{disrupted} nodes are disrupted, {allowed} may be"));
            }
        }
        Ok(())
    }

    /// The template changes once every node is there.
    fn react(
        &mut self,
        _record: &WriteRecord,
        _random: &mut Random,
    ) -> Vec<(SignedDuration, Request)> {
        if self.has_drifted || !self.is_provisioned() {
            return Vec::new();
        }
        self.has_drifted = true;
        (self.when_provisioned)();
        let labels = json!({REVISION: "two"});
        let body = json!({"spec": {"template": {"metadata": {"labels": labels}}}});
        vec![(SignedDuration::from_mins(1), Request::merge(&format!("{POOLS}/default"), body))]
    }

    fn rest(&mut self, _now: Timestamp) {}

    fn is_complete(&self) -> Result<(), String> {
        let (current, claims) = (self.current.len(), self.claims.len());
        let (pods, nodes) = (self.ready_pods.len(), self.nodes);
        if self.has_drifted && [current, claims, pods] == [nodes; 3] {
            return Ok(());
        }
        Err(format!("{current} of {claims} nodes are of the new template, {pods} pods are ready"))
    }
}
