//! KubeFleet: objects of a hub placed on member clusters. The wire types.
//!
//! Two groups: `placement.kubernetes-fleet.io` and `cluster.kubernetes-fleet.io`. `v1beta1` is
//! what is stored; the other served versions are the same schema with fewer fields. Most kinds
//! exist twice, for cluster-scoped and for namespaced placements, with one content.

pub mod binding;
pub mod cluster;
mod definition;
pub mod envelope;
pub mod eviction;
pub mod overrides;
pub mod placement;
pub mod placement_status;
pub mod policy;
mod schema;
pub mod snapshot;
pub mod staged;
pub mod strategy;
pub mod work;

pub use definition::crds;

#[cfg(test)]
mod tests;
