//! The status of an update run while it is worked on: read leniently, written back with every
//! field it had. A typed view would lose what other versions put there; what a run's spec asks for
//! is read through its type.

use convoy_api::Object;
use convoy_api::fleet::staged::{ApprovalSubject, UpdateRunSpec};
use serde_json::{Value, json};

use crate::condition;
pub(crate) use crate::condition::conditioned::{Conditioned as Node, Stamp};
use crate::dialect::fleet::names::{INITIALIZED, PROGRESSING, STARTED, SUCCEEDED};
use crate::dialect::fleet::read::overrides::Applicable;
use crate::dialect::fleet::read::placement::{apply_strategy, field, list, text};
use crate::dialect::fleet::read::strategy::StageConfig;

/// How far one stage has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stage {
    pub(crate) node: Node,
    pub(crate) clusters: Vec<Node>,
    pub(crate) before: Vec<Node>,
    pub(crate) after: Vec<Node>,
}

/// How far the run has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) node: Node,
    pub(crate) stages: Vec<Stage>,
    pub(crate) deletion: Option<Stage>,
}

/// What a cluster or stage can come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Succeeded,
    Failed,
}

impl Node {
    /// The record of one cluster of a stage.
    pub(crate) fn cluster(name: &str) -> Self {
        Self::named("clusterName", name)
    }

    pub(crate) fn timed_wait() -> Self {
        Self::named("type", "TimedWait")
    }

    pub(crate) fn approval(request: &str) -> Self {
        let mut node = Self::named("type", "Approval");
        node.put("approvalRequestName", json!(request));
        node
    }

    /// The cluster that the record is about.
    pub(crate) fn cluster_name(&self) -> &str {
        self.text("clusterName")
    }

    pub(crate) fn approval_request(&self) -> &str {
        self.text("approvalRequestName")
    }

    /// The overrides that the run brings to the cluster.
    pub(crate) fn overrides(&self) -> Applicable {
        Applicable::read(&self.fields())
    }

    pub(crate) fn set_overrides(&mut self, overrides: &Applicable) {
        self.put("resourceOverrideSnapshots", overrides.namespaced_json());
        self.put("clusterResourceOverrideSnapshots", overrides.cluster_json());
    }

    /// Whether `Succeeded` is decided, and how.
    pub(crate) fn end(&self) -> Option<End> {
        match self.status(SUCCEEDED) {
            Some("True") => Some(End::Succeeded),
            Some("False") => Some(End::Failed),
            _ => None,
        }
    }
}

impl Stage {
    pub(crate) fn named(name: &str) -> Self {
        Self { node: Node::named("stageName", name), ..Self::default() }
    }

    fn read(value: &Value, generation: i64) -> Self {
        let nodes = |name: &str| -> Vec<Node> {
            list(value, name).iter().map(|entry| Node::read(entry, generation)).collect()
        };
        Self {
            node: Node::read(value, generation),
            clusters: nodes("clusters"),
            before: nodes("beforeStageTaskStatus"),
            after: nodes("afterStageTaskStatus"),
        }
    }

    fn write(&self) -> Value {
        let mut fields = self.node.write();
        let mut put = |name: &str, nodes: &[Node], required: bool| {
            if required || !nodes.is_empty() {
                let nodes = nodes.iter().map(|node| Value::Object(node.write())).collect();
                fields.insert(name.to_owned(), Value::Array(nodes));
            }
        };
        put("clusters", &self.clusters, true);
        put("beforeStageTaskStatus", &self.before, false);
        put("afterStageTaskStatus", &self.after, false);
        Value::Object(fields)
    }

    pub(crate) fn name(&self) -> &str {
        self.node.text("stageName")
    }

    /// The clusters, by name and in order.
    pub(crate) fn cluster_names(&self) -> impl Iterator<Item = &str> {
        self.clusters.iter().map(Node::cluster_name)
    }

    /// How many clusters have begun and are not done.
    pub(crate) fn in_progress(&self) -> usize {
        self.clusters.iter().filter(|cluster| is_under_way(cluster)).count()
    }

    pub(crate) fn unfinished(&self) -> usize {
        self.clusters.iter().filter(|cluster| cluster.end() != Some(End::Succeeded)).count()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.node.is_true(SUCCEEDED)
    }

    pub(crate) fn begin(&mut self, stamp: Stamp) {
        self.node.put_once("startTime", condition::instant(stamp.now));
        let why = ("StageUpdatingStarted", "clusters of the stage are being updated");
        self.node.set(stamp, PROGRESSING, "True", why);
    }

    pub(crate) fn wait(&mut self, stamp: Stamp, message: &str) {
        self.node.set(stamp, PROGRESSING, "False", ("StageUpdatingWaiting", message));
    }

    pub(crate) fn succeed(&mut self, stamp: Stamp) {
        let why = ("StageUpdatingSucceeded", "all clusters are updated and all tasks are done");
        self.close(stamp, "True", why, why);
    }

    pub(crate) fn skip(&mut self, stamp: Stamp) {
        self.node.put_once("startTime", condition::instant(stamp.now));
        let why = ("StageUpdatingSkippedNoClusters", "the stage has no clusters");
        self.close(stamp, "True", why, why);
    }

    pub(crate) fn fail(&mut self, stamp: Stamp, message: &str) {
        let reason = "StageUpdatingFailed";
        self.close(stamp, "False", (reason, "the stage was aborted"), (reason, message));
    }

    fn close(&mut self, stamp: Stamp, end: &'static str, over: (&str, &str), why: (&str, &str)) {
        self.node.put_once("endTime", condition::instant(stamp.now));
        self.node.set(stamp, PROGRESSING, "False", over);
        self.node.set(stamp, SUCCEEDED, end, why);
    }
}

/// What a run goes by from its first pass on, whatever changes later.
#[derive(Clone, Debug)]
pub(crate) struct Initial<'a> {
    pub(crate) policy_index: &'a str,
    pub(crate) cluster_count: usize,
    pub(crate) resource_index: &'a str,
    pub(crate) apply_strategy: &'a Value,
    /// The update strategy, as [`strategy_snapshot`](super::strategy::strategy_snapshot) gives it.
    pub(crate) strategy: Value,
}

impl Record {
    pub(crate) fn initialise(&mut self, initial: Initial<'_>, stamp: Stamp) {
        let node = &mut self.node;
        node.put("policySnapshotIndexUsed", json!(initial.policy_index));
        node.put("policyObservedClusterCount", json!(initial.cluster_count));
        node.put("resourceSnapshotIndexUsed", json!(initial.resource_index));
        node.put("appliedStrategy", initial.apply_strategy.clone());
        node.put("stagedUpdateStrategySnapshot", initial.strategy);
        let why = ("UpdateRunInitializedSuccessfully", "the stages of the run are settled");
        node.set(stamp, INITIALIZED, "True", why);
    }

    /// Whether the run failed to initialise, or finished either way: nothing happens any more.
    pub(crate) fn is_over(&self) -> bool {
        self.node.status(INITIALIZED) == Some("False")
            || self.node.is_true(INITIALIZED) && self.node.end().is_some()
    }

    /// A stage by its position; one past the last is the delete stage.
    pub(crate) fn stage(&self, index: usize) -> Option<&Stage> {
        self.stages.iter().chain(&self.deletion).nth(index)
    }

    pub(crate) fn policy_index(&self) -> &str {
        self.node.text("policySnapshotIndexUsed")
    }

    pub(crate) fn cluster_count(&self) -> Option<u64> {
        self.node.get("policyObservedClusterCount").as_u64()
    }

    pub(crate) fn resource_index(&self) -> &str {
        self.node.text("resourceSnapshotIndexUsed")
    }

    /// The apply strategy that the placement had at the start, in canonical form.
    pub(crate) fn apply_strategy(&self) -> Value {
        apply_strategy(self.node.get("appliedStrategy"))
    }

    /// The update strategy as it was at the start.
    pub(crate) fn strategy(&self) -> &Value {
        self.node.get("stagedUpdateStrategySnapshot")
    }

    /// The settings of a stage.
    pub(crate) fn config(&self, stage: usize) -> StageConfig {
        StageConfig::nth(self.strategy(), stage)
    }

    /// The most clusters of a stage that may be in progress.
    pub(crate) fn max_concurrency(&self, stage: usize) -> u32 {
        let clusters = self.stages.get(stage).map_or(0, |stage| stage.clusters.len());
        self.config(stage).max_concurrency(clusters)
    }

    pub(crate) fn read(status: &Value, generation: i64) -> Self {
        let stages = list(status, "stagesStatus").iter();
        let deletion = Some(field(status, "deletionStageStatus")).filter(|value| value.is_object());
        Self {
            node: Node::read(status, generation),
            stages: stages.map(|stage| Stage::read(stage, generation)).collect(),
            deletion: deletion.map(|stage| Stage::read(stage, generation)),
        }
    }

    pub(crate) fn write(&self) -> Value {
        let mut fields = self.node.write();
        if !self.stages.is_empty() {
            let stages = self.stages.iter().map(Stage::write).collect();
            fields.insert("stagesStatus".into(), Value::Array(stages));
        }
        if let Some(deletion) = &self.deletion {
            fields.insert("deletionStageStatus".into(), deletion.write());
        }
        Value::Object(fields)
    }

    pub(crate) fn progress(&mut self, stamp: Stamp) {
        let why = ("UpdateRunProgressing", "clusters are being updated");
        self.node.set(stamp, PROGRESSING, "True", why);
    }

    pub(crate) fn stand(&mut self, stamp: Stamp, reason: &str, message: &str) {
        self.node.set(stamp, PROGRESSING, "False", (reason, message));
    }

    pub(crate) fn succeed(&mut self, stamp: Stamp) {
        let why = ("UpdateRunSucceeded", "all stages are finished");
        self.node.set(stamp, PROGRESSING, "False", why);
        self.node.set(stamp, SUCCEEDED, "True", why);
    }

    pub(crate) fn fail(&mut self, stamp: Stamp, message: &str) {
        let reason = "UpdateRunFailed";
        self.node.set(stamp, PROGRESSING, "False", (reason, "the run was aborted"));
        self.node.set(stamp, SUCCEEDED, "False", (reason, message));
    }
}

/// Marks of one cluster.
pub(crate) fn cluster_started(cluster: &mut Node, stamp: Stamp) {
    let why = ("ClusterUpdatingStarted", "the cluster is being updated");
    cluster.set(stamp, STARTED, "True", why);
}

pub(crate) fn cluster_succeeded(cluster: &mut Node, stamp: Stamp) {
    let why = ("ClusterUpdatingSucceeded", "the cluster is updated");
    cluster.set(stamp, SUCCEEDED, "True", why);
}

pub(crate) fn cluster_failed(cluster: &mut Node, stamp: Stamp, message: &str) {
    cluster.set(stamp, SUCCEEDED, "False", ("ClusterUpdatingFailed", message));
}

/// Has begun and is not done.
pub(crate) fn is_under_way(cluster: &Node) -> bool {
    cluster.is_true(STARTED) && cluster.end() != Some(End::Succeeded)
}

/// What a run's spec asks for. One that does not fit its type is refused, and asks for nothing.
pub(crate) fn spec(run: &Object) -> UpdateRunSpec {
    run.spec_view().unwrap_or_else(|_| UpdateRunSpec {
        placement_name: String::new(),
        resource_snapshot_index: None,
        staged_rollout_strategy_name: String::new(),
        state: None,
    })
}

/// What people want of a run, as it is written.
pub(crate) fn state(run: &Object) -> &str {
    run.spec_text("state")
}

/// The run and the stage that an approval request is for.
pub(crate) fn approval_subject(request: &Object) -> ApprovalSubject {
    request.spec_view().unwrap_or_else(|_| ApprovalSubject {
        parent_stage_rollout: String::new(),
        target_stage: String::new(),
    })
}

/// The status word of a condition of the current generation.
pub(crate) fn current_status<'o>(object: &'o Object, kind: &str) -> Option<&'o str> {
    let condition = object.condition(kind)?;
    let observed = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
    (observed == object.generation()).then(|| text(condition, "status"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::fleet::names::DELETE_STAGE;

    #[test]
    fn a_record_is_written_back_as_it_was_read() {
        let status = json!({"policySnapshotIndexUsed": "0", "unknown": {"kept": 1},
            "stagesStatus": [{"stageName": "canary", "startTime": "2026-01-01T00:00:00Z",
                "clusters": [{"clusterName": "c1", "conditions": [{"type": "Started",
                    "status": "True", "observedGeneration": 2, "reason": "x"}]}],
                "afterStageTaskStatus": [{"type": "TimedWait"}]}],
            "deletionStageStatus": {"stageName": DELETE_STAGE, "clusters": []},
            "conditions": [{"type": "Initialized", "status": "True", "observedGeneration": 2}]});
        let record = Record::read(&status, 2);
        assert_eq!(record.write(), status);
        assert_eq!(record.stages[0].in_progress(), 1);
        let odd = json!({"stagesStatus": "x", "deletionStageStatus": 3, "conditions": {}});
        assert_eq!(Record::read(&odd, 1).stages.len(), 0);
    }
}
