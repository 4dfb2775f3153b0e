//! Strategies: how changes reach clusters, and how objects are applied there.

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::schema;
use crate::derive::JsonSchema;
use crate::text::CountOrPercent;

/// How changes reach the clusters that are picked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// `External` leaves the bindings to a staged update run or another controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RollingUpdate", "External"]), extend("default" = "RollingUpdate"), extend("x-kubernetes-validations" = schema::strategy_type_rules()))]
    pub r#type: Option<String>,
    /// Budgets of the rolling update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdateConfig>,
    /// How objects are applied on the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply_strategy: Option<ApplyStrategy>,
    /// What happens to them when the placement goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_strategy: Option<DeleteStrategy>,
    /// Whether their status comes back to the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = schema::report_back_rules()))]
    pub report_back_strategy: Option<ReportBackStrategy>,
}

/// Budgets of the rolling update, both against the target number of clusters, rounded up.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdateConfig {
    /// The most clusters that may be without working resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::share_of_clusters")]
    pub max_unavailable: Option<CountOrPercent>,
    /// The most clusters beyond the target that may carry the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::share_of_clusters")]
    pub max_surge: Option<CountOrPercent>,
    /// How long resources whose availability cannot be told count as not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 60))]
    pub unavailable_period_seconds: Option<i64>,
}

/// How objects are applied on the member.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyStrategy {
    /// What counts as a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["PartialComparison", "FullComparison"]), extend("default" = "PartialComparison"))]
    pub comparison_option: Option<String>,
    /// Whether drifted objects are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotDrifted"]), extend("default" = "Always"))]
    pub when_to_apply: Option<String>,
    /// `ReportDiff` writes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ClientSideApply", "ServerSideApply", "ReportDiff"]), extend("default" = "ClientSideApply"))]
    pub r#type: Option<String>,
    /// Whether objects that others own may be applied too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_co_ownership: Option<bool>,
    /// Only with `ServerSideApply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply_config: Option<ServerSideApplyConfig>,
    /// What happens to objects that are there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNoDiff", "Never"]), extend("default" = "Always"))]
    pub when_to_take_over: Option<String>,
}

/// Settings of server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApplyConfig {
    /// Whether conflicts are won.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// What happens to objects on the member when the placement goes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteStrategy {
    /// `Abandon` leaves them there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Abandon", "Delete"]), extend("default" = "Delete"))]
    pub propagation_policy: Option<String>,
}

/// Whether the status of objects on the member comes back to the hub.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportBackStrategy {
    #[schemars(extend("enum" = ["Disabled", "Mirror"]), extend("default" = "Disabled"))]
    pub r#type: String,
    /// Required with `Mirror`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["OriginalResource", "WorkAPI"]))]
    pub destination: Option<String>,
}
