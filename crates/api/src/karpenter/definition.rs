//! The CRDs of this dialect, derived from its types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::kwok::KWOKNodeClass;
use super::node_claim::NodeClaim;
use super::{node_pool, node_pool_v1beta1};

pub(crate) fn crds() -> Vec<CustomResourceDefinition> {
    let pools = vec![node_pool::NodePool::crd(), node_pool_v1beta1::NodePool::crd()];
    let pools = kube::core::crd::merge_crds(pools, "v1")
        .expect("both versions are of one group, kind and scope");
    vec![pools, NodeClaim::crd(), node_class()]
}

/// A class with nothing to set is written without a `spec`.
fn node_class() -> CustomResourceDefinition {
    let mut crd = KWOKNodeClass::crd();
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()) {
        schema.required = None;
    }
    crd
}
