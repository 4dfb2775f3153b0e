//! How a staged update run stands, down to each cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use super::UpdateStrategySpec;
use crate::derive::JsonSchema;
use crate::fleet::placement_status::NamespacedName;
use crate::fleet::strategy::ApplyStrategy;

/// How a run stands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateRunStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_snapshot_index_used: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_observed_cluster_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_snapshot_index_used: Option<String>,
    /// The apply strategy that the placement had at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_strategy: Option<ApplyStrategy>,
    /// The strategy as it was at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged_update_strategy_snapshot: Option<UpdateStrategySpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages_status: Option<Vec<StageUpdatingStatus>>,
    /// Clusters that are no longer picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_stage_status: Option<StageUpdatingStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// How a stage stands.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageUpdatingStatus {
    pub stage_name: String,
    pub clusters: Vec<ClusterUpdatingStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2))]
    pub after_stage_task_status: Option<Vec<StageTaskStatus>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1))]
    pub before_stage_task_status: Option<Vec<StageTaskStatus>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub start_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub end_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// How a cluster of a stage stands.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterUpdatingStatus {
    pub cluster_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_override_snapshots: Option<Vec<NamespacedName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_resource_override_snapshots: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// How a task of a stage stands.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageTaskStatus {
    #[schemars(extend("enum" = ["TimedWait", "Approval"]))]
    pub r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_request_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}
