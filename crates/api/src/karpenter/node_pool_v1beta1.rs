//! NodePool `v1beta1`, in which budgets by reason were proposed. Reasons and numbers may be
//! written in the several ways that the proposal's examples use.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(test)]
use super::schema;
use super::template::{NodeClaimTemplate, Resources, Taint, TemplateRequirement};
use crate::derive::{CustomResource, JsonSchema};

/// A pool of nodes of one make, and the budgets under which they are replaced.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1beta1",
    kind = "NodePool",
    plural = "nodepools",
    singular = "nodepool",
    category = "karpenter",
    status = "super::node_pool::NodePoolStatus",
    printcolumn = r#"{"name": "NodeClass", "type": "string", "jsonPath": ".spec.template.spec.nodeClassRef.name"}"#,
    printcolumn = r#"{"name": "Weight", "type": "string", "jsonPath": ".spec.weight", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// What the nodes are made from.
    pub template: NodeClaimTemplate<TemplateSpec>,
    /// When and how many nodes may be disrupted at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = serde_json::json!({"consolidationPolicy": "WhenUnderutilized", "expireAfter": "720h"})), extend("x-kubernetes-validations" = schema::lenient_disruption_rules()))]
    pub disruption: Option<Disruption>,
    /// The most the pool may use in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::resources")]
    pub limits: Option<Resources>,
    /// Pools of higher weight are tried first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
}

/// What a pool asks of its nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// Taints that the nodes have for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else removes once a node is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Option<Vec<Taint>>,
    /// Which nodes will do: instance types, zones, architectures.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"), extend("x-kubernetes-validations" = schema::requirement_rules()))]
    pub requirements: Vec<TemplateRequirement>,
    /// The provider's settings for the nodes.
    pub node_class_ref: NodeClassRef,
    /// Settings of the nodes' kubelets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_object")]
    pub kubelet: Option<Value>,
    /// What the nodes' pods ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_object")]
    pub resources: Option<Value>,
}

/// Which object holds the provider's settings.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassRef {
    /// Its group and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
}

/// When and how many nodes may be disrupted at once.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must be empty; goes with the policy `WhenEmpty`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_OR_NEVER))]
    pub consolidate_after: Option<String>,
    /// Which nodes are worth consolidating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "WhenUnderutilized"), extend("enum" = ["WhenEmpty", "WhenUnderutilized"]))]
    pub consolidation_policy: Option<String>,
    /// The age at which a node is replaced, within the budgets; `Never` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_OR_NEVER), extend("default" = "720h"))]
    pub expire_after: Option<String>,
    /// How many nodes may be disrupted at once; the smallest that applies counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"), extend("default" = serde_json::json!([{"nodes": "10%"}])), extend("x-kubernetes-validations" = [schema::rule("'duration' must be set with 'schedule'", "self.all(x, !has(x.duration) || has(x.schedule))")]))]
    pub budgets: Option<Vec<Budget>>,
}

/// A limit on how many nodes of the pool are disrupted at once.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// A count, as a number or quoted, or a share of the pool's nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lenient_nodes")]
    pub nodes: Option<Value>,
    /// When it begins to apply, in cron notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::BUDGET_SCHEDULE))]
    pub schedule: Option<String>,
    /// How long it applies from each beginning; absent, it always applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::BUDGET_DURATION))]
    pub duration: Option<String>,
    /// Which disruptions it limits; absent, those that no other budget names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::lenient_reasons")]
    pub reasons: Option<Vec<String>>,
    /// The same under another name: a list, or one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::anything")]
    pub reason: Option<Value>,
}
