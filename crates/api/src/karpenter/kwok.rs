//! The node class of simulated nodes, so that examples written for upstream's simulated
//! provider apply unchanged.

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::schema;
use super::template::Condition;
use crate::derive::{CustomResource, JsonSchema};

/// Settings of simulated nodes.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "karpenter.kwok.sh",
    version = "v1alpha1",
    kind = "KWOKNodeClass",
    plural = "kwoknodeclasses",
    singular = "kwoknodeclass",
    category = "karpenter",
    shortname = "kwoknc",
    shortname = "kwokncs",
    status = "KWOKNodeClassStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct KWOKNodeClassSpec {
    /// How long after its launch a node appears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_registration_delay: Option<String>,
}

/// Whether nodes can be made.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct KWOKNodeClassStatus {
    /// What is true of it; ready from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = schema::ready_from_the_start()))]
    pub conditions: Option<Vec<Condition>>,
}
