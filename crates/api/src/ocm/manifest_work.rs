//! The `ManifestWork` kind: these manifests on this cluster.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(test)]
use super::schema;
use super::shape::Condition;
use crate::derive::{CustomResource, JsonSchema};

/// Manifests for the cluster whose namespace this is.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "ManifestWork",
    plural = "manifestworks",
    singular = "manifestwork",
    namespaced,
    derive = "PartialEq",
    status = "ManifestWorkStatus",
    doc = "Manifests for the cluster whose namespace this is",
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// How single manifests are applied and watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_configs: Option<Vec<ManifestConfig>>,
    /// On whose behalf the agent applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Workload {
    /// Whole objects of any kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::embedded_objects")]
    pub manifests: Option<Vec<Value>>,
}

/// What stays on the cluster when the work goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOption {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Foreground", "enum" = ["Foreground", "Orphan", "SelectivelyOrphan"]))]
    pub propagation_policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphans>,
    /// How long a completed work stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphans {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphaning_rules: Option<Vec<ResourceIdentifier>>,
}

/// One resource on the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ResourceIdentifier {
    /// Empty for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The plural, as in a URL.
    pub resource: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestConfig {
    pub resource_identifier: ResourceIdentifier,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback_rules: Option<Vec<FeedbackRule>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub condition_rules: Option<Vec<ConditionRule>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Poll", "enum" = ["Poll", "Watch"]))]
    pub feedback_scrape_type: Option<String>,
}

/// What of a resource's status is reported to the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackRule {
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["WellKnownStatus", "JSONPaths"]))]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub json_paths: Option<Vec<JsonPath>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct JsonPath {
    pub name: String,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// How a manifest is brought onto the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Update", "enum" = ["Update", "CreateOnly", "ServerSideApply", "ReadOnly"]))]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApply>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApply {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "work-agent"), regex(pattern = "^work-agent"))]
    pub field_manager: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub ignore_fields: Option<Vec<IgnoreField>>,
}

/// Fields that are left to whoever else writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreField {
    #[schemars(extend("default" = "OnSpokePresent", "enum" = ["OnSpokePresent", "OnSpokeChange"]))]
    pub condition: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_paths: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_pointers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jq_path_expressions: Option<Vec<String>>,
}

/// A condition of the work, made from the state of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionRule {
    pub condition: String,
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["WellKnownConditions", "CEL"]))]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel_expressions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Executor {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<ExecutorSubject>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorSubject {
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["ServiceAccount"]))]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountSubject>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ServiceAccountSubject {
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub namespace: String,
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
}

/// What the agent reports.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_status: Option<ResourceStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ResourceStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Vec<ManifestCondition>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestCondition {
    pub resource_meta: ResourceMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_feedback: Option<StatusFeedback>,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ResourceMeta {
    /// Which manifest of the work.
    pub ordinal: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct StatusFeedback {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<FeedbackValue>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackValue {
    pub name: String,
    pub field_value: FieldValue,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldValue {
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Integer", "String", "Boolean", "JsonRaw"]))]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub json_raw: Option<String>,
}
