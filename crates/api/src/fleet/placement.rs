//! The placement kinds: what goes to member clusters, to which, and how fast.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use super::policy::PlacementPolicy;
#[cfg(test)]
use super::schema;
use super::strategy::RolloutStrategy;
use crate::derive::{CustomResource, JsonSchema};

/// Objects of the hub and the member clusters they go to.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterResourcePlacement",
    plural = "clusterresourceplacements",
    singular = "clusterresourceplacement",
    shortname = "crp",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "super::placement_status::PlacementStatus",
    doc = "Objects of the hub and the member clusters they go to",
    printcolumn = r#"{"name": "Gen", "type": "string", "jsonPath": ".metadata.generation"}"#,
    printcolumn = r#"{"name": "Type", "type": "string", "jsonPath": ".spec.policy.placementType", "priority": 1}"#,
    printcolumn = r#"{"name": "Scheduled", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ClusterResourcePlacementScheduled\")].status"}"#,
    printcolumn = r#"{"name": "Scheduled-Gen", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ClusterResourcePlacementScheduled\")].observedGeneration"}"#,
    printcolumn = r#"{"name": "Work-Synchronized", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ClusterResourcePlacementWorkSynchronized\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Work-Synchronized-Gen", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ClusterResourcePlacementWorkSynchronized\")].observedGeneration", "priority": 1}"#,
    printcolumn = r#"{"name": "Available", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ClusterResourcePlacementAvailable\")].status"}"#,
    printcolumn = r#"{"name": "Available-Gen", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ClusterResourcePlacementAvailable\")].observedGeneration"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = schema::cluster_placement_rules()))]
pub struct ClusterResourcePlacementSpec(pub PlacementSpec);

/// Objects of one namespace of the hub and the member clusters they go to.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ResourcePlacement",
    plural = "resourceplacements",
    singular = "resourceplacement",
    namespaced,
    shortname = "rp",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "super::placement_status::PlacementStatus",
    doc = "Objects of one namespace of the hub and the member clusters they go to",
    printcolumn = r#"{"name": "Gen", "type": "string", "jsonPath": ".metadata.generation"}"#,
    printcolumn = r#"{"name": "Type", "type": "string", "jsonPath": ".spec.policy.placementType", "priority": 1}"#,
    printcolumn = r#"{"name": "Scheduled", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ResourcePlacementScheduled\")].status"}"#,
    printcolumn = r#"{"name": "Scheduled-Gen", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ResourcePlacementScheduled\")].observedGeneration"}"#,
    printcolumn = r#"{"name": "Work-Synchronized", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ResourcePlacementWorkSynchronized\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Work-Synchronized-Gen", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ResourcePlacementWorkSynchronized\")].observedGeneration", "priority": 1}"#,
    printcolumn = r#"{"name": "Available", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ResourcePlacementAvailable\")].status"}"#,
    printcolumn = r#"{"name": "Available-Gen", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ResourcePlacementAvailable\")].observedGeneration"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(transparent)]
#[schemars(extend("x-kubernetes-validations" = schema::placement_rules()))]
pub struct ResourcePlacementSpec(pub PlacementSpec);

/// What both placement kinds ask for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Which objects are taken along; together they make one unit.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-validations" = schema::selector_rules()))]
    pub resource_selectors: Vec<ResourceSelectorTerm>,
    /// Which clusters are picked; absent means all that fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = schema::policy_rules()))]
    pub policy: Option<PlacementPolicy>,
    /// How changes reach the clusters that are picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
    /// How many snapshots of resources and policies are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000), extend("default" = 10))]
    pub revision_history_limit: Option<i32>,
    /// Where the status can be read; only for the cluster-scoped kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ClusterScopeOnly", "NamespaceAccessible"]), extend("default" = "ClusterScopeOnly"))]
    pub status_reporting_scope: Option<String>,
}

/// Selects objects of one kind, by name, by label, or all of them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelectorTerm {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    /// Exactly this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The objects with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// For namespaces: whether what lives in them comes along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["NamespaceOnly", "NamespaceWithResources", "NamespaceWithResourceSelectors"]), extend("default" = "NamespaceWithResources"))]
    pub selection_scope: Option<String>,
}
