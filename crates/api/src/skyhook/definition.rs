//! The CRDs of this dialect, derived from its types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::deployment_policy::DeploymentPolicy;
use super::resource::Skyhook;

pub(crate) fn crds() -> Vec<CustomResourceDefinition> {
    vec![Skyhook::crd(), DeploymentPolicy::crd()]
}
