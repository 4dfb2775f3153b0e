//! The `DeploymentPolicy` kind: compartments of nodes, each with a budget and a pace.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use crate::derive::{CustomResource, JsonSchema};

/// How changes flow through the nodes that a Skyhook selects.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "skyhook.nvidia.com",
    version = "v1alpha1",
    kind = "DeploymentPolicy",
    plural = "deploymentpolicies",
    singular = "deploymentpolicy",
    derive = "PartialEq",
    doc = "How changes flow through the nodes that a Skyhook selects"
)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentPolicySpec {
    /// Applies to nodes that no compartment selects.
    pub default: PolicyDefault,
    /// Node groups with a budget and a pace of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compartments: Option<Vec<Compartment>>,
    /// Whether batch state is forgotten when a rollout completes or a package changes its
    /// version; absent means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_batch_state_on_completion: Option<bool>,
}

/// The settings of nodes that no compartment selects.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyDefault {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
}

/// A named group of nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compartment {
    /// Unique within the policy; `__default__` is taken.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Which nodes belong here; an empty selector takes all.
    pub selector: LabelSelector,
    pub budget: Budget,
    /// Absent: batches as large as the budget. The default's strategy is not inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
}

/// The most nodes in progress at once: exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// A share of the compartment's nodes, rounded down, at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub percent: Option<i64>,
    /// A number of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub count: Option<i64>,
}

/// How batches grow: exactly one of the three.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear: Option<LinearStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponential: Option<ExponentialStrategy>,
}

/// Batches of the same size throughout.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedStrategy {
    /// The size of every batch; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub initial_batch: Option<i64>,
    /// The share of a batch that has to succeed; 100 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub batch_threshold: Option<i64>,
    /// Failed batches in a row that stop the compartment; absent never stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub failure_threshold: Option<i64>,
    /// The progress in percent from which failures neither slow nor stop; 50 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub safety_limit: Option<i64>,
}

/// Batches that grow by a number, and shrink by it after an early failure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinearStrategy {
    /// The size of the first batch; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub initial_batch: Option<i64>,
    /// What a batch grows by; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub delta: Option<i64>,
    /// The share of a batch that has to succeed; 100 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub batch_threshold: Option<i64>,
    /// Failed batches in a row that stop the compartment; absent never stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub failure_threshold: Option<i64>,
    /// The progress in percent from which failures neither slow nor stop; 50 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub safety_limit: Option<i64>,
}

/// Batches that grow by a factor, and are divided by it after an early failure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExponentialStrategy {
    /// The size of the first batch; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub initial_batch: Option<i64>,
    /// What a batch is multiplied by; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub growth_factor: Option<i64>,
    /// The share of a batch that has to succeed; 100 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub batch_threshold: Option<i64>,
    /// Failed batches in a row that stop the compartment; absent never stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub failure_threshold: Option<i64>,
    /// The progress in percent from which failures neither slow nor stop; 50 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub safety_limit: Option<i64>,
}
