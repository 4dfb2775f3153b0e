//! Snapshots: what was selected and which policy held, written down and never changed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::policy::PlacementPolicy;
#[cfg(test)]
use super::schema;
use crate::derive::{CustomResource, JsonSchema};

/// Objects of the hub as they were selected at one moment.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterResourceSnapshot",
    plural = "clusterresourcesnapshots",
    singular = "clusterresourcesnapshot",
    shortname = "crs",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "ResourceSnapshotStatus",
    doc = "Objects of the hub as they were selected at one moment",
    printcolumn = r#"{"name": "Gen", "type": "string", "jsonPath": ".metadata.generation"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
pub struct ClusterResourceSnapshotSpec(pub SelectedResources);

/// Objects of one namespace of the hub as they were selected at one moment.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ResourceSnapshot",
    plural = "resourcesnapshots",
    singular = "resourcesnapshot",
    namespaced,
    shortname = "rs",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "ResourceSnapshotStatus",
    doc = "Objects of one namespace of the hub as they were selected at one moment",
    printcolumn = r#"{"name": "Gen", "type": "string", "jsonPath": ".metadata.generation"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
pub struct ResourceSnapshotSpec(pub SelectedResources);

/// A policy as it held at one moment, and the clusters found by it.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterSchedulingPolicySnapshot",
    plural = "clusterschedulingpolicysnapshots",
    singular = "clusterschedulingpolicysnapshot",
    shortname = "csps",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "SchedulingPolicySnapshotStatus",
    doc = "A policy as it held at one moment, and the clusters found by it",
    printcolumn = r#"{"name": "Gen", "type": "string", "jsonPath": ".metadata.generation"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
pub struct ClusterSchedulingPolicySnapshotSpec(pub PolicySnapshot);

/// A policy of a namespaced placement as it held at one moment.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "SchedulingPolicySnapshot",
    plural = "schedulingpolicysnapshots",
    singular = "schedulingpolicysnapshot",
    namespaced,
    shortname = "sps",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "SchedulingPolicySnapshotStatus",
    doc = "A policy of a namespaced placement as it held at one moment",
    printcolumn = r#"{"name": "Gen", "type": "string", "jsonPath": ".metadata.generation"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
pub struct SchedulingPolicySnapshotSpec(pub PolicySnapshot);

/// Whole objects.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectedResources {
    #[schemars(schema_with = "schema::embedded_list")]
    pub selected_resources: Vec<Value>,
}

/// Nothing is reported here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSnapshotStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// A policy and its hash.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySnapshot {
    /// The placement's policy without its number of clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PlacementPolicy>,
    /// Base64 of the hex digest.
    #[schemars(extend("format" = "byte"))]
    pub policy_hash: String,
}

/// The clusters found.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingPolicySnapshotStatus {
    /// The generation of the placement that this is about.
    #[serde(rename = "observedCRPGeneration", default, skip_serializing_if = "Option::is_none")]
    pub observed_crp_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// All that were picked, then some that were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub target_clusters: Option<Vec<ClusterDecision>>,
}

/// Whether a cluster was picked, and why.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDecision {
    pub cluster_name: String,
    pub selected: bool,
    /// Only where clusters are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_score: Option<ClusterScore>,
    pub reason: String,
}

/// How well a cluster fits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterScore {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity_score: Option<i32>,
    /// How well it spreads over the topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_score: Option<i32>,
}
