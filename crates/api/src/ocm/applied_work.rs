//! The `AppliedManifestWork` kind: what an agent has brought onto its cluster for one work.

use serde::{Deserialize, Serialize};

use crate::derive::{CustomResource, JsonSchema};

/// The resources that belong to one work, on the member cluster.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, CustomResource, Deserialize, Serialize, JsonSchema,
)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "AppliedManifestWork",
    plural = "appliedmanifestworks",
    singular = "appliedmanifestwork",
    derive = "PartialEq",
    status = "AppliedManifestWorkStatus",
    doc = "The resources that belong to one ManifestWork, on the member cluster"
)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkSpec {
    /// Which hub the work came from.
    pub hub_hash: String,
    #[serde(rename = "agentID")]
    pub agent_id: String,
    pub manifest_work_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_resources: Option<Vec<AppliedResource>>,
    /// Since when the work is missing on the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub eviction_start_time: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct AppliedResource {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub version: String,
    pub resource: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}
