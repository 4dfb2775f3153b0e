//! Karpenter: node claims disrupted by reason, within budgets and windows. The wire types.
//!
//! A NodePool is served in two versions. `v1` is upstream's; `v1beta1` is the one in which
//! budgets by reason were first proposed, with that proposal's meaning. [`convert`] turns the
//! second into the first without losing what it meant.

pub mod convert;
#[cfg(test)]
pub(crate) mod definition;
pub mod kwok;
pub mod names;
pub mod node_claim;
pub mod node_pool;
pub mod node_pool_v1beta1;
#[cfg(test)]
mod schema;
pub mod template;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The CRDs of this dialect, each with every version it is served in.
pub fn crds() -> Vec<CustomResourceDefinition> {
    crate::definition::read(include_str!("../crds/karpenter.jsonl"))
}
