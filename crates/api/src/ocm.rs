//! Open Cluster Management: placements cut into decision groups, works rolled through them.
//! The wire types, the names, and the old spellings that are still read.

pub mod names;
pub mod spelling;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The CRDs of this dialect, each with every version it is served in.
pub fn crds() -> Vec<CustomResourceDefinition> {
    Vec::new()
}
