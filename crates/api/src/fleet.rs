//! KubeFleet: objects of a hub placed on member clusters. The wire types.
//!
//! Two groups: `placement.kubernetes-fleet.io` and `cluster.kubernetes-fleet.io`. `v1beta1` is
//! what is stored; the other served versions are the same schema with fewer fields. Most kinds
//! exist twice, for cluster-scoped and for namespaced placements, with one content. Of the cluster
//! inventory API, which all cluster managers share, there is `ClusterProfile`.

pub mod binding;
pub mod cluster;
pub mod cluster_profile;
#[cfg(test)]
pub(crate) mod definition;
pub mod envelope;
pub mod eviction;
pub mod overrides;
pub mod placement;
pub mod placement_status;
pub mod policy;
#[cfg(test)]
mod schema;
pub mod snapshot;
pub mod staged;
pub mod strategy;
pub mod work;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub const PLACEMENT_GROUP: &str = "placement.kubernetes-fleet.io";

/// On snapshots, bindings and Works: the placement that they belong to.
pub const PARENT: &str = "kubernetes-fleet.io/parent-CRP";

/// The CRDs of this dialect, each with every version it is served in.
pub fn crds() -> Vec<CustomResourceDefinition> {
    crate::definition::read(include_str!("../crds/fleet.jsonl"))
}

#[cfg(test)]
mod tests;
