//! Skyhook: node packages rolled through compartments with budgets and batches. The wire types.
//!
//! Group `skyhook.nvidia.com`, one version. [`SkyhookSpec`] says which packages belong on which
//! nodes; [`DeploymentPolicySpec`] says at what pace they get there.

#[cfg(test)]
pub(crate) mod definition;
mod deployment_policy;
mod package;
mod resource;
mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::object::GroupKind;

pub use deployment_policy::{
    Budget, Compartment, DeploymentPolicySpec, ExponentialStrategy, FixedStrategy, LinearStrategy,
    PolicyDefault, Strategy,
};
pub use package::{Interrupt, InterruptType, Package, ResourceOverrides};
pub use resource::{DeploymentPolicyOptions, InterruptionBudget, SkyhookSpec};
pub use status::{
    BatchState, CompartmentStatus, PackageState, PackageStatus, SkyhookStatus, Stage, StatusWord,
};

/// The API group of both kinds, and the prefix of every annotation, label and condition.
pub const GROUP: &str = "skyhook.nvidia.com";

pub const SKYHOOK: GroupKind = GroupKind::new(GROUP, "Skyhook");
pub const DEPLOYMENT_POLICY: GroupKind = GroupKind::new(GROUP, "DeploymentPolicy");

/// Names on objects that the engine, its tools and simulated kubelets share.
pub mod names {
    /// On package pods: `name-version` as a label, and what the pod stands for as an annotation.
    pub const PACKAGE: &str = "skyhook.nvidia.com/package";
    /// On a Skyhook: it stands still while this is `true`.
    pub const PAUSE: &str = "skyhook.nvidia.com/pause";
}

/// The CRDs of this dialect, each with every version it is served in.
pub fn crds() -> Vec<CustomResourceDefinition> {
    crate::definition::read(include_str!("../crds/skyhook.jsonl"))
}

#[cfg(test)]
mod tests;
