//! KubeFleet: placements rolled over member clusters. The wire types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The CRDs of this dialect, each with every version it is served in.
pub fn crds() -> Vec<CustomResourceDefinition> {
    Vec::new()
}
