//! The CRDs of this dialect, derived from its types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps,
};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::applied_work::AppliedManifestWork;
use super::claim::ClusterClaim;
use super::cluster_set::{ManagedClusterSet, ManagedClusterSetBinding};
use super::decision::{AddOnPlacementScoreStatus, PlacementDecisionStatus};
use super::managed_cluster::ManagedCluster;
use super::manifest_work::ManifestWork;
use super::placement::Placement;
use super::replica_set::ManifestWorkReplicaSet;

pub(crate) fn crds() -> Vec<CustomResourceDefinition> {
    let exclusive = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
    vec![
        ManagedCluster::crd(),
        with_default_spec(ManagedClusterSet::crd(), &exclusive),
        ManagedClusterSetBinding::crd(),
        Placement::crd(),
        without_spec(DecisionShape::crd()),
        without_spec(ScoreShape::crd()),
        ClusterClaim::crd(),
        ManifestWork::crd(),
        AppliedManifestWork::crd(),
        ManifestWorkReplicaSet::crd(),
    ]
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

/// A CRD whose kind has no `spec`.
fn without_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for schema in schemas(&mut crd) {
        if let Some(properties) = &mut schema.properties {
            properties.remove("spec");
        }
        if let Some(required) = &mut schema.required {
            required.retain(|field| field != "spec");
        }
        schema.required = schema.required.take().filter(|required| !required.is_empty());
    }
    crd
}

/// A CRD whose whole `spec` has a default.
fn with_default_spec(
    mut crd: CustomResourceDefinition,
    default: &Value,
) -> CustomResourceDefinition {
    for schema in schemas(&mut crd) {
        let spec = schema.properties.as_mut().and_then(|properties| properties.get_mut("spec"));
        if let Some(spec) = spec {
            spec.default = Some(JSON(default.clone()));
        }
        if let Some(required) = &mut schema.required {
            required.retain(|field| field != "spec");
        }
        schema.required = schema.required.take().filter(|required| !required.is_empty());
    }
    crd
}

fn schemas(crd: &mut CustomResourceDefinition) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let versions = crd.spec.versions.iter_mut();
    let schemas = versions.filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut())
}
