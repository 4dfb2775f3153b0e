//! What is reported about a placement, in all and per cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use crate::derive::JsonSchema;

/// How a placement stands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// What is selected, in the order of application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_resources: Option<Vec<ResourceIdentifier>>,
    /// The index of the newest resource snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_resource_index: Option<String>,
    /// One entry per picked cluster, then one for each that could not be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_statuses: Option<Vec<PerClusterPlacementStatus>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// Names an object.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceIdentifier {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub version: String,
    pub kind: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The envelope that it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<EnvelopeIdentifier>,
}

/// A name within a namespace.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedName {
    pub name: String,
    pub namespace: String,
}

/// How a placement stands on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PerClusterPlacementStatus {
    /// Left out where no cluster could be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// The index of the resource snapshot that the cluster has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_resource_index: Option<String>,
    /// Override snapshots that concern the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applicable_resource_overrides: Option<Vec<NamespacedName>>,
    /// Override snapshots that concern the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applicable_cluster_resource_overrides: Option<Vec<String>>,
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

/// An object that could not be applied or is not available.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedResourcePlacement {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub version: String,
    pub kind: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The envelope that it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<EnvelopeIdentifier>,
    /// What is wrong.
    pub condition: Condition,
}

/// An object that somebody changed on the member.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftedResourcePlacement {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub version: String,
    pub kind: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The envelope that it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<EnvelopeIdentifier>,
    #[schemars(extend("format" = "date-time"))]
    pub observation_time: String,
    pub target_cluster_observed_generation: i64,
    #[schemars(extend("format" = "date-time"))]
    pub first_drifted_observed_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_drifts: Option<Vec<PatchDetail>>,
}

/// An object on the member that differs from the hub.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffedResourcePlacement {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub version: String,
    pub kind: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The envelope that it came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<EnvelopeIdentifier>,
    #[schemars(extend("format" = "date-time"))]
    pub observation_time: String,
    /// Absent where the member has no such object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cluster_observed_generation: Option<i64>,
    #[schemars(extend("format" = "date-time"))]
    pub first_diffed_observed_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_diffs: Option<Vec<PatchDetail>>,
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchDetail {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_in_member: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_in_hub: Option<String>,
}

/// The envelope that an object came in.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeIdentifier {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ConfigMap", "ClusterResourceEnvelope", "ResourceEnvelope"]), extend("default" = "ConfigMap"))]
    pub kind: Option<String>,
}
