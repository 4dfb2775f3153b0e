//! Kinds that have no spec, only a status: `PlacementDecision` and `AddOnPlacementScore`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shape::{Condition, without_spec};

/// Up to a hundred clusters of one decision group.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementDecision {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PlacementDecisionStatus>,
}

/// What an add-on thinks of a cluster, in the cluster's namespace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScore {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<AddOnPlacementScoreStatus>,
}

impl PlacementDecision {
    pub fn crd() -> CustomResourceDefinition {
        without_spec(DecisionShape::crd())
    }
}

impl AddOnPlacementScore {
    pub fn crd() -> CustomResourceDefinition {
        without_spec(ScoreShape::crd())
    }
}

// The derive wants a spec; it is taken out of the CRD again.
#[derive(Clone, Debug, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "PlacementDecision",
    root = "DecisionShape",
    plural = "placementdecisions",
    singular = "placementdecision",
    namespaced,
    status = "PlacementDecisionStatus",
    doc = "Up to a hundred clusters of one decision group of a placement"
)]
struct DecisionSpec {}

#[derive(Clone, Debug, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnPlacementScore",
    root = "ScoreShape",
    plural = "addonplacementscores",
    singular = "addonplacementscore",
    namespaced,
    status = "AddOnPlacementScoreStatus",
    doc = "What an add-on thinks of the cluster whose namespace this is"
)]
struct ScoreSpec {}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct PlacementDecisionStatus {
    pub decisions: Vec<ClusterDecision>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDecision {
    pub cluster_name: String,
    /// Always empty.
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScoreStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scores: Option<Vec<AddOnScoreValue>>,
    /// From then on the scores count as 0; absent means never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub valid_until: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct AddOnScoreValue {
    pub name: String,
    #[schemars(range(min = -100, max = 100))]
    pub value: i32,
}
