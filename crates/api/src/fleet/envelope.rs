//! The kinds whose content stands beside the metadata instead of below `spec`: envelopes, and
//! the copy of a placement's status that namespace users may read.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::placement_status::PlacementStatus;
#[cfg(test)]
use super::schema;
use crate::derive::JsonSchema;

/// Wraps cluster-scoped objects that must not take effect on the hub.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceEnvelope {
    pub api_version: String,
    pub kind: String,
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// Whole objects, under any key.
    #[schemars(schema_with = "schema::wrapped")]
    pub data: BTreeMap<String, Value>,
}

/// Wraps objects of its own namespace that must not take effect on the hub.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceEnvelope {
    pub api_version: String,
    pub kind: String,
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// Whole objects, under any key.
    #[schemars(schema_with = "schema::wrapped")]
    pub data: BTreeMap<String, Value>,
}

/// The status of a cluster-scoped placement, readable in the namespace that it selects.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourcePlacementStatus {
    pub api_version: String,
    pub kind: String,
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    pub source_status: PlacementStatus,
    /// When the copy was made.
    #[schemars(extend("format" = "date-time"))]
    pub last_updated_time: String,
}
