//! Member clusters, as the hub and as their agents see them.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::Subject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::schema;
use crate::derive::{CustomResource, JsonSchema};

/// A cluster that placements can go to.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cluster.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "MemberCluster",
    plural = "memberclusters",
    singular = "membercluster",
    shortname = "cluster",
    category = "fleet",
    category = "fleet-cluster",
    derive = "PartialEq",
    status = "MemberClusterStatus",
    doc = "A cluster that placements can go to",
    printcolumn = r#"{"name": "Joined", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Joined\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Member-Agent-Last-Seen", "type": "date", "jsonPath": ".status.agentStatus[?(@.type==\"MemberAgent\")].lastReceivedHeartbeat"}"#,
    printcolumn = r#"{"name": "Node-Count", "type": "string", "jsonPath": ".status.properties.kubernetes-fleet\\.io/node-count.value"}"#,
    printcolumn = r#"{"name": "Available-CPU", "type": "string", "jsonPath": ".status.resourceUsage.available.cpu"}"#,
    printcolumn = r#"{"name": "Available-Memory", "type": "string", "jsonPath": ".status.resourceUsage.available.memory"}"#,
    printcolumn = r#"{"name": "Allocatable-CPU", "type": "string", "jsonPath": ".status.resourceUsage.allocatable.cpu", "priority": 1}"#,
    printcolumn = r#"{"name": "Allocatable-Memory", "type": "string", "jsonPath": ".status.resourceUsage.allocatable.memory", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MemberClusterSpec {
    /// Who the agent is to the hub.
    pub identity: Subject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 600), extend("default" = 60))]
    pub heartbeat_period_seconds: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub taints: Option<Vec<Taint>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_options: Option<DeleteOptions>,
}

/// Keeps placements out that do not tolerate it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[schemars(extend("enum" = ["NoSchedule"]))]
    pub effect: String,
}

/// How the cluster may leave.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Skip", "Strict"]), extend("default" = "Strict"))]
    pub validation_mode: Option<String>,
}

/// How the cluster is doing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberClusterStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// What the cluster reports about itself, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<BTreeMap<String, PropertyValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_usage: Option<ResourceUsage>,
    /// Its namespaces, and the work that made each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_status: Option<Vec<AgentStatus>>,
}

/// The agent's side of a member cluster.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cluster.kubernetes-fleet.io",
    version = "v1beta1",
    kind = "InternalMemberCluster",
    plural = "internalmemberclusters",
    singular = "internalmembercluster",
    namespaced,
    shortname = "imc",
    category = "fleet",
    category = "fleet-cluster",
    derive = "PartialEq",
    status = "InternalMemberClusterStatus",
    doc = "The agent's side of a member cluster",
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct InternalMemberClusterSpec {
    #[schemars(extend("enum" = ["Join", "Leave"]))]
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 600), extend("default" = 60))]
    pub heartbeat_period_seconds: Option<i32>,
}

/// What the agent reports.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InternalMemberClusterStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// What the cluster reports about itself, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<BTreeMap<String, PropertyValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_usage: Option<ResourceUsage>,
    /// Its namespaces, and the work that made each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_status: Option<Vec<AgentStatus>>,
}

/// A property and when it was seen.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PropertyValue {
    pub value: String,
    #[schemars(extend("format" = "date-time"))]
    pub observation_time: String,
}

/// What the cluster has and has left.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::resources")]
    pub capacity: Option<BTreeMap<String, IntOrString>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::resources")]
    pub allocatable: Option<BTreeMap<String, IntOrString>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::resources")]
    pub available: Option<BTreeMap<String, IntOrString>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub observation_time: Option<String>,
}

/// What one agent reports.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// `MemberAgent`, `MultiClusterServiceAgent` or `ServiceExportImportAgent`.
    pub r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_received_heartbeat: Option<String>,
}
