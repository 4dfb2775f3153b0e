//! Overrides: what is different on some clusters.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::placement::ResourceSelectorTerm;
use super::policy::ClusterSelector;
#[cfg(test)]
use super::schema;
use crate::derive::{CustomResource, JsonSchema};

/// What is different about cluster-scoped objects on some clusters.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterResourceOverride",
    plural = "clusterresourceoverrides",
    singular = "clusterresourceoverride",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    doc = "What is different about cluster-scoped objects on some clusters"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::cluster_override_rules()))]
pub struct ClusterResourceOverrideSpec {
    /// The placement it is for; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementRef>,
    /// Objects by name; a namespace stands for everything in it.
    #[schemars(length(min = 1, max = 20))]
    pub cluster_resource_selectors: Vec<ResourceSelectorTerm>,
    pub policy: OverridePolicy,
}

/// What is different about objects of one namespace on some clusters.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ResourceOverride",
    plural = "resourceoverrides",
    singular = "resourceoverride",
    namespaced,
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    doc = "What is different about objects of one namespace on some clusters"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::override_rules()))]
pub struct ResourceOverrideSpec {
    /// The placement it is for; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementRef>,
    /// Objects of this namespace, by name.
    #[schemars(length(min = 1, max = 20))]
    pub resource_selectors: Vec<ResourceSelector>,
    pub policy: OverridePolicy,
}

/// A `ClusterResourceOverride` as it held at one moment.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterResourceOverrideSnapshot",
    plural = "clusterresourceoverridesnapshots",
    singular = "clusterresourceoverridesnapshot",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    doc = "A ClusterResourceOverride as it held at one moment"
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceOverrideSnapshotSpec {
    pub override_spec: ClusterResourceOverrideSpec,
    /// Base64 of the hex digest.
    #[schemars(extend("format" = "byte"))]
    pub override_hash: String,
}

/// A `ResourceOverride` as it held at one moment.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ResourceOverrideSnapshot",
    plural = "resourceoverridesnapshots",
    singular = "resourceoverridesnapshot",
    namespaced,
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    doc = "A ResourceOverride as it held at one moment"
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceOverrideSnapshotSpec {
    pub override_spec: ResourceOverrideSpec,
    /// Base64 of the hex digest.
    #[schemars(extend("format" = "byte"))]
    pub override_hash: String,
}

/// The placement an override is for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementRef {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Cluster", "Namespaced"]), extend("default" = "Cluster"))]
    pub scope: Option<String>,
}

/// One object of the override's namespace.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: String,
}

/// Rules, applied in order.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverridePolicy {
    #[schemars(length(min = 1, max = 20))]
    pub override_rules: Vec<OverrideRule>,
}

/// What is different on the clusters selected.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverrideRule {
    /// Absent: no cluster. Without terms: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSelector>,
    /// `Delete` leaves the object out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["JSONPatch", "Delete"]), extend("default" = "JSONPatch"))]
    pub override_type: Option<String>,
    /// Applied in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub json_patch_overrides: Option<Vec<JsonPatchOverride>>,
}

/// One operation of a JSON patch. Texts may refer to the cluster's name and labels.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JsonPatchOverride {
    #[schemars(extend("enum" = ["add", "remove", "replace"]))]
    pub op: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub value: Option<Value>,
}
