//! Staged updates: runs through stages of clusters, with waits and approvals between them.

pub mod status;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::schema;
use crate::derive::{CustomResource, JsonSchema};
use crate::text::CountOrPercent;

/// Takes one index of resources through the stages of a strategy.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterStagedUpdateRun",
    plural = "clusterstagedupdateruns",
    singular = "clusterstagedupdaterun",
    shortname = "csur",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "self::status::UpdateRunStatus",
    doc = "Takes one index of resources through the stages of a strategy",
    printcolumn = r#"{"name": "Placement", "type": "string", "jsonPath": ".spec.placementName"}"#,
    printcolumn = r#"{"name": "Resource-Snapshot-Index", "type": "string", "jsonPath": ".spec.resourceSnapshotIndex"}"#,
    printcolumn = r#"{"name": "Policy-Snapshot-Index", "type": "string", "jsonPath": ".status.policySnapshotIndexUsed"}"#,
    printcolumn = r#"{"name": "Initialized", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Initialized\")].status"}"#,
    printcolumn = r#"{"name": "Progressing", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Progressing\")].status"}"#,
    printcolumn = r#"{"name": "Succeeded", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Succeeded\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Strategy", "type": "string", "jsonPath": ".spec.stagedRolloutStrategyName", "priority": 1}"#
)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = schema::run_rules()))]
pub struct ClusterStagedUpdateRunSpec(pub UpdateRunSpec);

/// Takes one index of a namespaced placement through the stages of a strategy.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "StagedUpdateRun",
    plural = "stagedupdateruns",
    singular = "stagedupdaterun",
    namespaced,
    shortname = "sur",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "self::status::UpdateRunStatus",
    doc = "Takes one index of a namespaced placement through the stages of a strategy",
    printcolumn = r#"{"name": "Placement", "type": "string", "jsonPath": ".spec.placementName"}"#,
    printcolumn = r#"{"name": "Resource-Snapshot-Index", "type": "string", "jsonPath": ".spec.resourceSnapshotIndex"}"#,
    printcolumn = r#"{"name": "Policy-Snapshot-Index", "type": "string", "jsonPath": ".status.policySnapshotIndexUsed"}"#,
    printcolumn = r#"{"name": "Initialized", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Initialized\")].status"}"#,
    printcolumn = r#"{"name": "Progressing", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Progressing\")].status"}"#,
    printcolumn = r#"{"name": "Succeeded", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Succeeded\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Strategy", "type": "string", "jsonPath": ".spec.stagedRolloutStrategyName", "priority": 1}"#
)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = schema::run_rules()))]
pub struct StagedUpdateRunSpec(pub UpdateRunSpec);

/// What both run kinds ask for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRunSpec {
    /// A placement of type External.
    #[schemars(length(max = 255), extend("x-kubernetes-validations" = schema::immutable()))]
    pub placement_name: String,
    /// Empty takes a fresh snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = schema::immutable()))]
    pub resource_snapshot_index: Option<String>,
    #[schemars(extend("x-kubernetes-validations" = schema::immutable()))]
    pub staged_rollout_strategy_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Initialize", "Run", "Stop"]), extend("default" = "Initialize"))]
    pub state: Option<String>,
}

/// Stages that runs go through.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterStagedUpdateStrategy",
    plural = "clusterstagedupdatestrategies",
    singular = "clusterstagedupdatestrategy",
    shortname = "csus",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    doc = "Stages that runs go through"
)]
#[serde(transparent)]
pub struct ClusterStagedUpdateStrategySpec(pub UpdateStrategySpec);

/// Stages that runs of namespaced placements go through.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "StagedUpdateStrategy",
    plural = "stagedupdatestrategies",
    singular = "stagedupdatestrategy",
    namespaced,
    shortname = "sus",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    doc = "Stages that runs of namespaced placements go through"
)]
#[serde(transparent)]
pub struct StagedUpdateStrategySpec(pub UpdateStrategySpec);

/// What both strategy kinds say.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategySpec {
    /// In order.
    #[schemars(length(max = 31))]
    pub stages: Vec<StageConfig>,
}

/// Clusters that are updated together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageConfig {
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]+$"))]
    pub name: String,
    /// Absent: no cluster. Empty: every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// A label with an integer value; clusters go in its order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sorting_label_key: Option<String>,
    /// How many clusters are updated at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::concurrency")]
    pub max_concurrency: Option<CountOrPercent>,
    /// What has to happen before the next stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2), extend("x-kubernetes-validations" = schema::after_task_rules()))]
    pub after_stage_tasks: Option<Vec<StageTask>>,
    /// What has to happen before this stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1), extend("x-kubernetes-validations" = schema::before_task_rules()))]
    pub before_stage_tasks: Option<Vec<StageTask>>,
}

/// A wait or an approval.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageTask {
    #[schemars(extend("enum" = ["TimedWait", "Approval"]))]
    pub r#type: String,
    /// Only with `TimedWait`, e.g. `1h30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(?:(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:s|m|h))+$"))]
    pub wait_time: Option<String>,
}

/// Asks a person to let a run go on.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterApprovalRequest",
    plural = "clusterapprovalrequests",
    singular = "clusterapprovalrequest",
    shortname = "careq",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "ApprovalRequestStatus",
    doc = "Asks a person to let a run go on",
    printcolumn = r#"{"name": "Update-Run", "type": "string", "jsonPath": ".spec.parentStageRollout"}"#,
    printcolumn = r#"{"name": "Stage", "type": "string", "jsonPath": ".spec.targetStage"}"#,
    printcolumn = r#"{"name": "Approved", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Approved\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = schema::immutable()))]
pub struct ClusterApprovalRequestSpec(pub ApprovalSubject);

/// Asks a person to let a run of a namespaced placement go on.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ApprovalRequest",
    plural = "approvalrequests",
    singular = "approvalrequest",
    namespaced,
    shortname = "areq",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "ApprovalRequestStatus",
    doc = "Asks a person to let a run of a namespaced placement go on",
    printcolumn = r#"{"name": "Update-Run", "type": "string", "jsonPath": ".spec.parentStageRollout"}"#,
    printcolumn = r#"{"name": "Stage", "type": "string", "jsonPath": ".spec.targetStage"}"#,
    printcolumn = r#"{"name": "Approved", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Approved\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = schema::immutable()))]
pub struct ApprovalRequestSpec(pub ApprovalSubject);

/// What both kinds of request say.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalSubject {
    /// The run.
    pub parent_stage_rollout: String,
    /// The stage.
    pub target_stage: String,
}

/// `Approved` is set by a person, `ApprovalAccepted` in answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequestStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}
