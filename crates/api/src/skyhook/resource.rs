//! The `Skyhook` kind: which packages belong on which nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};

use super::package::Package;
use crate::derive::{CustomResource, JsonSchema};

/// Packages and the nodes they belong on.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "skyhook.nvidia.com",
    version = "v1alpha1",
    kind = "Skyhook",
    plural = "skyhooks",
    singular = "skyhook",
    derive = "PartialEq",
    status = "super::status::SkyhookStatus",
    doc = "Packages and the nodes they belong on",
    printcolumn = r#"{"name": "Status", "type": "string", "jsonPath": ".status.status"}"#,
    printcolumn = r#"{"name": "Priority", "type": "integer", "jsonPath": ".spec.priority"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Nodes In-Progress", "type": "integer", "jsonPath": ".status.nodesInProgress"}"#,
    printcolumn = r#"{"name": "Complete Nodes", "type": "string", "jsonPath": ".status.completeNodes"}"#,
    printcolumn = r#"{"name": "Packages", "type": "string", "jsonPath": ".status.packageList"}"#,
    printcolumn = r#"{"name": "Policy", "type": "string", "jsonPath": ".spec.deploymentPolicy"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SkyhookSpec {
    /// One package on one node at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub serial: Option<bool>,
    /// Has no effect; the annotation `skyhook.nvidia.com/pause` pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<bool>,
    /// Pods that have to finish by themselves before a node is drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_non_interrupt_labels: Option<LabelSelector>,
    /// The nodes; an empty selector takes all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selectors: Option<LabelSelector>,
    /// The name of a `DeploymentPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_policy: Option<String>,
    /// What this Skyhook wants otherwise than its policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_policy_options: Option<DeploymentPolicyOptions>,
    /// The budget of a Skyhook without a policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption_budget: Option<InterruptionBudget>,
    /// The packages, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<BTreeMap<String, Package>>,
    /// Taints that do not keep the packages away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_tolerations: Option<Vec<Toleration>>,
    /// Workloads stay off a node, by a taint, until this Skyhook is complete there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub runtime_required: Option<bool>,
    /// Nodes that are seen for the first time get that taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub auto_taint_new_nodes: Option<bool>,
    /// Lower goes first on a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 200), range(min = 1))]
    pub priority: Option<i64>,
}

/// What a Skyhook wants otherwise than its policy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentPolicyOptions {
    /// Absent: as the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_batch_state_on_completion: Option<bool>,
}

/// The most nodes in progress at once: at most one of the two.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptionBudget {
    /// A share of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<i64>,
    /// A number of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count: Option<i64>,
}
