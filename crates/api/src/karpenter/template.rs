//! What the nodes of a pool are made from, shared by NodePool and NodeClaim.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(test)]
use super::schema;
use crate::derive::JsonSchema;

/// Amounts by resource name, in whatever notation they were written.
pub type Resources = BTreeMap<String, Value>;

/// What every NodeClaim of a pool starts from.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct NodeClaimTemplate<Spec> {
    /// Labels and annotations that every node of the pool carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// The claims' own spec.
    pub spec: Spec,
}

/// Labels and annotations that the nodes of a pool carry.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct TemplateMeta {
    /// Labels of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "granular"))]
    pub annotations: Option<BTreeMap<String, String>>,
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
    /// How long a node may take to drain before it is taken down regardless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION))]
    pub termination_grace_period: Option<String>,
    /// The age at which a node is replaced; `Never` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_OR_NEVER), extend("default" = "720h"))]
    pub expire_after: Option<String>,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What pods have to tolerate.
    #[schemars(length(min = 1), regex(pattern = schema::QUALIFIED))]
    pub key: String,
    /// Which of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::QUALIFIED))]
    pub value: Option<String>,
    /// What happens to pods that do not tolerate it.
    #[schemars(extend("enum" = ["NoSchedule", "PreferNoSchedule", "NoExecute"]))]
    pub effect: String,
    /// When it was put there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub time_added: Option<String>,
}

/// One demand on the labels of a pool's nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRequirement {
    /// The label.
    #[schemars(length(max = 316), regex(pattern = schema::QUALIFIED), extend("x-kubernetes-validations" = schema::key_rules(true)))]
    pub key: String,
    /// How the label relates to the values.
    #[schemars(extend("enum" = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]))]
    pub operator: String,
    /// What it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
    /// How many different values must stay possible (alpha).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<i64>,
}

/// Which object holds the provider's settings.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct NodeClassRef {
    /// Its API group.
    #[schemars(regex(pattern = "^[^/]*$"), extend("x-kubernetes-validations" = [schema::rule("group may not be empty", "self != ''")]))]
    pub group: String,
    /// Its kind.
    #[schemars(extend("x-kubernetes-validations" = [schema::rule("kind may not be empty", "self != ''")]))]
    pub kind: String,
    /// Its name.
    #[schemars(extend("x-kubernetes-validations" = [schema::rule("name may not be empty", "self != ''")]))]
    pub name: String,
}

/// An entry of `status.conditions`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub kind: String,
    /// True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// The generation it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Since when the status reads so.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// One word on why.
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// A sentence on why.
    #[schemars(length(max = 32768))]
    pub message: String,
}
