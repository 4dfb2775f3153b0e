//! The `ClusterClaim` kind: what a cluster says about itself, on the cluster.

use serde::{Deserialize, Serialize};

use crate::derive::{CustomResource, JsonSchema};

/// A name and a value that the agent reports to the hub.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, CustomResource, Deserialize, Serialize, JsonSchema,
)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1alpha1",
    kind = "ClusterClaim",
    plural = "clusterclaims",
    singular = "clusterclaim",
    derive = "PartialEq",
    doc = "What a cluster says about itself; its agent reports it to the hub"
)]
pub struct ClusterClaimSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: Option<String>,
}
