//! The `ManagedClusterSet` and `ManagedClusterSetBinding` kinds: clusters put together, and
//! namespaces that may use them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use super::shape::Condition;
use crate::derive::{CustomResource, JsonSchema};

/// Clusters put together.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSet",
    plural = "managedclustersets",
    singular = "managedclusterset",
    shortname = "mclset",
    shortname = "mclsets",
    derive = "PartialEq",
    status = "ManagedClusterSetStatus",
    doc = "Clusters put together",
    printcolumn = r#"{"name": "Empty", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ClusterSetEmpty\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"selectorType": "ExclusiveClusterSetLabel"}))]
    pub cluster_selector: Option<SetSelector>,
    /// Namespaces to be managed on every cluster of the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub managed_namespaces: Option<Vec<ManagedNamespace>>,
}

/// Which clusters belong to a set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetSelector {
    /// By the label that names the set, or by any labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ExclusiveClusterSetLabel", "enum" = ["ExclusiveClusterSetLabel", "LabelSelector"]))]
    pub selector_type: Option<String>,
    /// An empty one selects every cluster, an absent one none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ManagedNamespace {
    #[schemars(length(max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ManagedClusterSetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// Lets the placements of a namespace use a set.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSetBinding",
    plural = "managedclustersetbindings",
    singular = "managedclustersetbinding",
    shortname = "mclsetbinding",
    shortname = "mclsetbindings",
    namespaced,
    derive = "PartialEq",
    status = "ManagedClusterSetBindingStatus",
    doc = "Lets the placements of a namespace use a cluster set",
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingSpec {
    /// The set; the binding has the same name.
    #[schemars(length(min = 1))]
    pub cluster_set: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ManagedClusterSetBindingStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}
