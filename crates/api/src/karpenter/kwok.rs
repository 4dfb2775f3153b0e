//! The node class of simulated nodes, so that examples written for upstream's simulated
//! provider apply unchanged.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::template::Condition;

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
    #[schemars(extend("default" = ready()))]
    pub conditions: Option<Vec<Condition>>,
}

/// The CRD of the kind. A class with nothing to set is written without a `spec`.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = KWOKNodeClass::crd();
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        schema.required = None;
    }
    crd
}

fn ready() -> Value {
    json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T01:01:01Z",
        "reason": "Ready", "message": ""}])
}
