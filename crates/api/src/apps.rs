//! The Kubernetes Deployment: replicas rolled from one ReplicaSet to the next. The wire types.
//!
//! Built-in kinds have no CRD. One table of Go structs ([`types`]) describes them; type checks
//! ([`shape`]), equality ([`equality`]) and the hash in the names of ReplicaSets ([`hash`]) all
//! read it, and the objects themselves stay raw JSON. [`defaults`] is what a server fills in.

pub mod defaults;
pub mod equality;
pub mod hash;
pub mod quantity;
pub mod shape;
pub mod spec;
pub mod types;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use crate::kinds::{DEPLOYMENT, POD, REPLICA_SET};

/// The label that keeps the pods of one ReplicaSet apart from those of its siblings.
pub const TEMPLATE_HASH: &str = "pod-template-hash";

/// The largest `int32`, which several fields read as "no limit".
pub const UNLIMITED: i64 = i32::MAX as i64;

/// Annotations of Deployments and ReplicaSets.
pub mod annotation {
    pub use crate::well_known::annotation::{
        DEPLOYMENT_REVISION as REVISION, LAST_APPLIED, POD_DELETION_COST,
    };

    pub const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
    pub const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
    pub const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
    pub const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

    /// Every annotation of ours begins with this, and stays on the object it was set on.
    pub const OURS: &str = "convoy/";
    /// On a Deployment: `deadline`, or `deadline,replica-failure`.
    pub const AUTO_ROLLBACK: &str = "convoy/auto-rollback";
    /// On a ReplicaSet: when its rollout was first complete.
    pub const COMPLETED_AT: &str = "convoy/completed-at";
    /// On a ReplicaSet: the generation of the Deployment that gave it up.
    pub const FAILED: &str = "convoy/failed";

    /// Whether an annotation is never copied between a Deployment and its ReplicaSets.
    pub fn is_reserved(key: &str) -> bool {
        let upstream =
            [LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO];
        upstream.contains(&key) || key.starts_with(OURS)
    }
}

/// The CRDs of this dialect: none, its kinds are built in.
pub fn crds() -> Vec<CustomResourceDefinition> {
    Vec::new()
}

#[cfg(test)]
mod tests;
