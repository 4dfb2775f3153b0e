//! Bindings: one placement on one cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use super::placement_status::{
    DiffedResourcePlacement, DriftedResourcePlacement, FailedResourcePlacement, NamespacedName,
};
use super::snapshot::ClusterDecision;
use super::strategy::ApplyStrategy;
use crate::derive::{CustomResource, JsonSchema};

/// A placement on one cluster.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterResourceBinding",
    plural = "clusterresourcebindings",
    singular = "clusterresourcebinding",
    shortname = "crb",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "ResourceBindingStatus",
    doc = "A placement on one cluster",
    printcolumn = r#"{"name": "WorkSynchronized", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"WorkSynchronized\")].status"}"#,
    printcolumn = r#"{"name": "ResourcesApplied", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Applied\")].status"}"#,
    printcolumn = r#"{"name": "ResourceAvailable", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Available\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
pub struct ClusterResourceBindingSpec(pub BindingSpec);

/// A namespaced placement on one cluster.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ResourceBinding",
    plural = "resourcebindings",
    singular = "resourcebinding",
    namespaced,
    shortname = "rb",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "ResourceBindingStatus",
    doc = "A namespaced placement on one cluster",
    printcolumn = r#"{"name": "WorkSynchronized", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"WorkSynchronized\")].status"}"#,
    printcolumn = r#"{"name": "ResourcesApplied", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Applied\")].status"}"#,
    printcolumn = r#"{"name": "ResourceAvailable", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Available\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
pub struct ResourceBindingSpec(pub BindingSpec);

/// What both binding kinds say.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingSpec {
    /// `Scheduled`, `Bound` or `Unscheduled`.
    pub state: String,
    /// The master snapshot; empty until it is bound for the first time.
    pub resource_snapshot_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_override_snapshots: Option<Vec<NamespacedName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_resource_override_snapshots: Option<Vec<String>>,
    /// The policy that picked the cluster.
    pub scheduling_policy_snapshot_name: String,
    pub target_cluster: String,
    /// Why the cluster was picked.
    pub cluster_decision: ClusterDecision,
    /// Written by whoever rolls out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply_strategy: Option<ApplyStrategy>,
}

/// How the cluster is doing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBindingStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub failed_placements: Option<Vec<FailedResourcePlacement>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub drifted_placements: Option<Vec<DriftedResourcePlacement>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub diffed_placements: Option<Vec<DiffedResourcePlacement>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}
