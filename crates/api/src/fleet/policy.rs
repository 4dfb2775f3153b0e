//! Policies: which member clusters a placement gets.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::schema;
use crate::derive::JsonSchema;

/// Which clusters are picked. Fields stand in the order in which a policy is hashed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementPolicy {
    /// `PickAll`, `PickN` or `PickFixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["PickAll", "PickN", "PickFixed"]), extend("default" = "PickAll"))]
    pub placement_type: Option<String>,
    /// The clusters, with `PickFixed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub cluster_names: Option<Vec<String>>,
    /// How many clusters, with `PickN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub number_of_clusters: Option<i32>,
    /// What clusters have to be like, and which are better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// How evenly clusters are taken from regions and the like; `PickN` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// Taints that do not keep a cluster out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), extend("x-kubernetes-validations" = schema::toleration_rules()))]
    pub tolerations: Option<Vec<Toleration>>,
}

/// What clusters have to be like, and which are better.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_affinity: Option<ClusterAffinity>,
}

/// What clusters have to be like, and which are better. Looked at when a cluster is picked, and
/// not again while it is used.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// A cluster has to match one of the terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_during_scheduling_ignored_during_execution: Option<ClusterSelector>,
    /// Clusters that match score higher; `PickN` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_during_scheduling_ignored_during_execution: Option<Vec<PreferredClusterSelector>>,
}

/// Terms of which one has to match.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    #[schemars(length(max = 10))]
    pub cluster_selector_terms: Vec<ClusterSelectorTerm>,
}

/// A preference and what it is worth.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferredClusterSelector {
    /// What a matching cluster scores; negative to avoid it.
    #[schemars(range(min = -100, max = 100))]
    pub weight: i32,
    pub preference: ClusterSelectorTerm,
}

/// Labels and properties of a cluster; all of them have to match.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelectorTerm {
    /// Absent: every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// In required terms only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property_selector: Option<PropertySelector>,
    /// In preferred terms only: the weight is shared out by rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property_sorter: Option<PropertySorter>,
}

/// What properties have to be like; all of them have to match.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PropertySelector {
    pub match_expressions: Vec<PropertySelectorRequirement>,
}

/// A property compared with a quantity.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PropertySelectorRequirement {
    pub name: String,
    #[schemars(extend("enum" = ["Gt", "Ge", "Eq", "Ne", "Lt", "Le"]))]
    pub operator: String,
    /// Exactly one quantity.
    #[schemars(length(max = 1))]
    pub values: Vec<String>,
}

/// Ranks clusters by a property.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PropertySorter {
    pub name: String,
    #[schemars(extend("enum" = ["Ascending", "Descending"]))]
    pub sort_order: String,
}

/// How evenly clusters are taken from the domains of a label.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// By how many clusters two domains may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1))]
    pub max_skew: Option<i32>,
    /// The label whose values are the domains.
    pub topology_key: String,
    /// Whether breaking it keeps a cluster out, or makes it worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["DoNotSchedule", "ScheduleAnyway"]), extend("default" = "DoNotSchedule"))]
    pub when_unsatisfiable: Option<String>,
}

/// A taint that does not keep a cluster out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Empty with `Exists`: every taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Equal", "Exists"]), extend("default" = "Equal"))]
    pub operator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Empty: every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["NoSchedule"]))]
    pub effect: Option<String>,
}
