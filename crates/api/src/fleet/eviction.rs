//! Evictions: taking a placement off one cluster, within its disruption budget.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::schema;
use crate::derive::{CustomResource, JsonSchema};
use crate::text::CountOrPercent;

/// Asks once for a placement to leave one cluster.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterResourcePlacementEviction",
    plural = "clusterresourceplacementevictions",
    singular = "clusterresourceplacementeviction",
    shortname = "crpe",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "PlacementEvictionStatus",
    doc = "Asks once for a placement to leave one cluster",
    printcolumn = r#"{"name": "Valid", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Valid\")].status"}"#,
    printcolumn = r#"{"name": "Executed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Executed\")].status"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PlacementEvictionSpec {
    #[schemars(length(max = 255), extend("x-kubernetes-validations" = schema::immutable()))]
    pub placement_name: String,
    #[schemars(length(max = 255), extend("x-kubernetes-validations" = schema::immutable()))]
    pub cluster_name: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementEvictionStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// How many clusters evictions may take away from the placement of the same name.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "ClusterResourcePlacementDisruptionBudget",
    plural = "clusterresourceplacementdisruptionbudgets",
    singular = "clusterresourceplacementdisruptionbudget",
    shortname = "crpdb",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    doc = "How many clusters evictions may take away from the placement of the same name"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::budget_rules()))]
pub struct PlacementDisruptionBudgetSpec {
    /// The most clusters without working resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::budget")]
    pub max_unavailable: Option<CountOrPercent>,
    /// The fewest clusters with working resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::budget")]
    pub min_available: Option<CountOrPercent>,
}
