//! Work: what the hub asks of one member, and what the member says about it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::placement_status::PatchDetail;
#[cfg(test)]
use super::schema;
use super::strategy::{ApplyStrategy, ReportBackStrategy};
use crate::derive::{CustomResource, JsonSchema};

/// Objects that one member cluster should have.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "Work",
    plural = "works",
    singular = "work",
    namespaced,
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "WorkStatus",
    doc = "Objects that one member cluster should have"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadTemplate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply_strategy: Option<ApplyStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_back_strategy: Option<ReportBackStrategy>,
}

/// Whole objects.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTemplate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::embedded_list")]
    pub manifests: Option<Vec<Value>>,
}

/// How the member is doing with it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_conditions: Option<Vec<ManifestCondition>>,
}

/// How one object stands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestCondition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<WorkResourceIdentifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_details: Option<DriftDetails>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff_details: Option<DiffDetails>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_reported_status: Option<BackReportedStatus>,
}

/// Names an object of a Work.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkResourceIdentifier {
    /// The position in the Work.
    pub ordinal: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What somebody changed on the member.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftDetails {
    #[schemars(extend("format" = "date-time"))]
    pub observation_time: String,
    pub observed_in_member_cluster_generation: i64,
    #[schemars(extend("format" = "date-time"))]
    pub first_drifted_observed_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_drifts: Option<Vec<PatchDetail>>,
}

/// What differs between hub and member.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffDetails {
    #[schemars(extend("format" = "date-time"))]
    pub observation_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_in_member_cluster_generation: Option<i64>,
    #[schemars(extend("format" = "date-time"))]
    pub first_diffed_observed_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_diffs: Option<Vec<PatchDetail>>,
}

/// The status of the object on the member.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackReportedStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::embedded")]
    pub observed_status: Option<Value>,
    #[schemars(extend("format" = "date-time"))]
    pub observation_time: String,
}

/// On the member: owns what a Work brought.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "placement.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "AppliedWork",
    plural = "appliedworks",
    singular = "appliedwork",
    category = "fleet",
    category = "fleet-placement",
    derive = "PartialEq",
    status = "AppliedWorkStatus",
    doc = "On the member: owns what a Work brought"
)]
#[serde(rename_all = "camelCase")]
pub struct AppliedWorkSpec {
    pub work_name: String,
    pub work_namespace: String,
}

/// What was applied.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedWorkStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_resources: Option<Vec<AppliedResource>>,
}

/// One object that was applied.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedResource {
    /// The position in the Work.
    pub ordinal: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}
