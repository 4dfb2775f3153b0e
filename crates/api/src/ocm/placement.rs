//! The `Placement` kind: which clusters, how many, and in which groups.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::schema;
use super::shape::{ClusterSelector, Condition, GroupClusterSelector, IntOrText, Others};
use crate::derive::{CustomResource, JsonSchema};

/// A choice of clusters. Fields under their old names are kept and read as today's.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "Placement",
    plural = "placements",
    singular = "placement",
    namespaced,
    derive = "PartialEq",
    status = "PlacementStatus",
    doc = "A choice of clusters, in ordered groups",
    printcolumn = r#"{"name": "Succeeded", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"PlacementSatisfied\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"PlacementSatisfied\")].reason"}"#,
    printcolumn = r#"{"name": "SelectedClusters", "type": "integer", "jsonPath": ".status.numberOfSelectedClusters"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PlacementSpec {
    /// Sets to look in, of those bound in the namespace; absent means all bound ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_sets: Option<Vec<String>>,
    /// How many clusters to select; absent means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// A cluster passes if any of them matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicates: Option<Vec<Predicate>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,
    /// Accepted and kept; spreading is not scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<SpreadPolicy>,
    /// Taints that do not keep a cluster out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,
    /// Accepted and kept; decisions are listed by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ClusterName", "enum" = ["ClusterName", "Score"]))]
    pub sort_by: Option<String>,
    /// Accepted and kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "1m"), regex(pattern = "^[0-9]+[hms]$"))]
    pub score_rate_limit: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Predicate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_cluster_selector: Option<ClusterSelector>,
}

/// What makes one cluster better than another.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct PrioritizerPolicy {
    /// `Additive` starts from Balance 1 and Steady 1, `Exact` from nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Additive"))]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configurations: Option<Vec<PrioritizerConfig>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerConfig {
    pub score_coordinate: ScoreCoordinate,
    /// What the score is multiplied by; 0 switches it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1), range(min = -10, max = 10))]
    pub weight: Option<i32>,
}

/// Which score.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreCoordinate {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "BuiltIn", "enum" = ["BuiltIn", "AddOn"]))]
    pub kind: Option<String>,
    /// Steady, Balance, `ResourceAllocatableCPU` or `ResourceAllocatableMemory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnScore {
    /// The `AddOnPlacementScore` in the cluster's namespace.
    pub resource_name: String,
    /// The score within it.
    pub score_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadPolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    pub spread_constraints: Option<Vec<SpreadConstraint>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    #[schemars(length(max = 316))]
    pub topology_key: String,
    #[schemars(extend("enum" = ["Label", "Claim"]))]
    pub topology_key_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1), range(min = 1))]
    pub max_skew: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ScheduleAnyway", "enum" = ["DoNotSchedule", "ScheduleAnyway"]))]
    pub when_unsatisfiable: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Empty with `Exists` tolerates every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 316),
        regex(
            pattern = r"^(([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]))?$"
        )
    )]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Equal", "enum" = ["Equal", "Exists"]))]
    pub operator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// Empty tolerates every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["NoSelect", "PreferNoSelect", "NoSelectIfNew", ""]))]
    pub effect: Option<String>,
    /// How long after the taint appeared; absent means for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How the selected clusters are grouped.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct DecisionStrategy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub others: Others,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStrategy {
    /// Clusters with a group of their own; the others follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_groups: Option<Vec<DecisionGroup>>,
    /// The most clusters of one group, or a share of all; absent means 100%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::group_length")]
    pub clusters_per_decision_group: Option<IntOrText>,
}

/// A named group. `GroupName` and `clusterSelector` are the seed's spellings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"))]
    pub group_name: Option<String>,
    #[serde(rename = "GroupName", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"))]
    pub seed_group_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_cluster_selector: Option<GroupClusterSelector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PlacementStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_selected_clusters: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_groups: Option<Vec<DecisionGroupStatus>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_score_update_time: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub others: Others,
}

/// A decision group. `placementDecisions` is the seed's spelling of `decisions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroupStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_group_index: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_group_name: Option<String>,
    /// Names of the `PlacementDecision` objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_decisions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub cluster_count: Option<i32>,
}
