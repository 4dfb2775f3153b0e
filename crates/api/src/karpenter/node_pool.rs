//! NodePool `v1`: what nodes to make, and how they may be disrupted.

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::schema;
use super::template::{Condition, NodeClaimTemplate, Resources, TemplateSpec};
use crate::derive::{CustomResource, JsonSchema};

/// A pool of nodes of one make, and the budgets under which they are replaced.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    singular = "nodepool",
    category = "karpenter",
    status = "NodePoolStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn = r#"{"name": "NodeClass", "type": "string", "jsonPath": ".spec.template.spec.nodeClassRef.name"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "string", "jsonPath": ".status.nodes"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Weight", "type": "integer", "jsonPath": ".spec.weight", "priority": 1}"#,
    printcolumn = r#"{"name": "CPU", "type": "string", "jsonPath": ".status.resources.cpu", "priority": 1}"#,
    printcolumn = r#"{"name": "Memory", "type": "string", "jsonPath": ".status.resources.memory", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::pool_rules()))]
pub struct NodePoolSpec {
    /// What the nodes are made from.
    #[schemars(extend("x-kubernetes-validations" = schema::template_rules()))]
    pub template: NodeClaimTemplate<TemplateSpec>,
    /// When and how many nodes may be disrupted at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = serde_json::json!({"consolidateAfter": "0s"})))]
    pub disruption: Option<Disruption>,
    /// The most the pool may use in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::resources")]
    pub limits: Option<Resources>,
    /// Pools of higher weight are tried first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// A fixed number of nodes; absent, the pool follows its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// When and how many nodes may be disrupted at once.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must have been left alone by pods before it is consolidated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_OR_NEVER), extend("default" = "0s"))]
    pub consolidate_after: Option<String>,
    /// Which nodes are worth consolidating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "WhenEmptyOrUnderutilized"), extend("enum" = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]))]
    pub consolidation_policy: Option<String>,
    /// How many nodes may be disrupted at once; the smallest that applies counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"), extend("default" = serde_json::json!([{"nodes": "10%"}])), extend("x-kubernetes-validations" = [schema::rule("'schedule' must be set with 'duration'", "self.all(x, has(x.schedule) == has(x.duration))")]))]
    pub budgets: Option<Vec<Budget>>,
}

/// A limit on how many nodes of the pool are disrupted at once.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// A count, or a share of the pool's nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::BUDGET_NODES), extend("default" = "10%"))]
    pub nodes: Option<String>,
    /// When it begins to apply, in cron notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::BUDGET_SCHEDULE))]
    pub schedule: Option<String>,
    /// How long it applies from each beginning, in hours and minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::BUDGET_DURATION))]
    pub duration: Option<String>,
    /// Which disruptions it limits; absent, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::reasons")]
    pub reasons: Option<Vec<String>>,
}

/// How the pool stands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// What its nodes have in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::resources")]
    pub resources: Option<Resources>,
    /// How many nodes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0))]
    pub nodes: Option<i64>,
    /// The generation of the node class that was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// What is true of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}
