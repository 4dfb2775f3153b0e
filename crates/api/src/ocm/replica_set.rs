//! The `ManifestWorkReplicaSet` kind: one work per selected cluster, rolled out by a strategy.

use serde::{Deserialize, Serialize};

use super::manifest_work::ManifestWorkSpec;
#[cfg(test)]
use super::schema;
use super::shape::{Condition, IntOrText, Others};
use crate::derive::{CustomResource, JsonSchema};

/// One work per selected cluster.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ManifestWorkReplicaSet",
    plural = "manifestworkreplicasets",
    singular = "manifestworkreplicaset",
    shortname = "mwrs",
    namespaced,
    derive = "PartialEq",
    status = "ManifestWorkReplicaSetStatus",
    doc = "One ManifestWork per selected cluster, rolled out by a strategy",
    printcolumn = r#"{"name": "Placement", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"PlacementVerified\")].reason"}"#,
    printcolumn = r#"{"name": "Found", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"PlacementVerified\")].status"}"#,
    printcolumn = r#"{"name": "ManifestWorks", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ManifestworkApplied\")].reason"}"#,
    printcolumn = r#"{"name": "Applied", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"ManifestworkApplied\")].status"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetSpec {
    /// What every selected cluster gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_work_template: Option<ManifestWorkSpec>,
    /// Placements of the same namespace, each with a strategy of its own.
    #[schemars(length(min = 1))]
    pub placement_refs: Vec<PlacementReference>,
    /// Whether deletion waits until the works are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Background", "enum" = ["Background", "Foreground"]))]
    pub cascade_deletion_policy: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementReference {
    #[schemars(length(min = 1))]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"type": "All", "all": {"progressDeadline": "None"}}))]
    pub rollout_strategy: Option<RolloutStrategy>,
}

/// How the template reaches the clusters. Beside `type` the seed's flat spelling is kept and
/// read. There are no defaults in here: they would win over a value in another spelling.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct RolloutStrategy {
    /// Absent means All.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["All", "Progressive", "ProgressivePerGroup"]))]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<RolloutAll>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive: Option<RolloutProgressive>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<RolloutProgressivePerGroup>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub others: Others,
}

/// Every cluster at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutAll {
    #[serde(flatten)]
    pub limits: RolloutLimits,
}

/// So many clusters at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressive {
    #[serde(flatten)]
    pub limits: RolloutLimits,
    /// Groups that go first and must succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything_listed")]
    pub mandatory_decision_groups: Option<Vec<MandatoryGroup>>,
    /// The most clusters in flight; absent means as many as a decision group may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::share")]
    pub max_concurrency: Option<IntOrText>,
}

/// One decision group after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressivePerGroup {
    #[serde(flatten)]
    pub limits: RolloutLimits,
    /// Groups that go first and must succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything_listed")]
    pub mandatory_decision_groups: Option<Vec<MandatoryGroup>>,
}

/// What all strategies have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutLimits {
    /// How long a cluster must be successful before it counts; absent means 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_success_time: Option<String>,
    /// How long a cluster may take; absent means as long as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^([0-9]+[hms].*|None|)$"))]
    pub progress_deadline: Option<String>,
    /// The spelling up to release 0.12: a deadline that, when it is missed, is no failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_text")]
    pub timeout: Option<IntOrText>,
    /// How many clusters may fail; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::share")]
    pub max_failures: Option<IntOrText>,
}

/// A group by name or number; the seed writes just the one or the other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum MandatoryGroup {
    Plain(IntOrText),
    #[serde(rename_all = "camelCase")]
    Entry {
        #[serde(skip_serializing_if = "Option::is_none")]
        group_name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        group_index: Option<i32>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_summary: Option<Vec<PlacementSummary>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSummary {
    pub name: String,
    /// `<groups> (<applied> / <selected> clusters applied)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_decision_groups: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// Works by what they report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    pub total: i64,
    pub progressing: i64,
    pub available: i64,
    pub degraded: i64,
    pub applied: i64,
    pub desired_total: i64,
    pub updated: i64,
}
