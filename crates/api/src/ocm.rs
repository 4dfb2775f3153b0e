//! Open Cluster Management: placements cut into decision groups, works rolled through them.
//! The wire types, the names, and the old spellings that are still read.

mod applied_work;
mod claim;
mod cluster_set;
mod decision;
#[cfg(test)]
pub(crate) mod definition;
mod managed_cluster;
mod manifest_work;
pub mod names;
mod placement;
mod replica_set;
#[cfg(test)]
mod schema;
mod shape;
pub mod spelling;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use applied_work::{AppliedManifestWorkSpec, AppliedManifestWorkStatus, AppliedResource};
pub use claim::ClusterClaimSpec;
pub use cluster_set::{
    ManagedClusterSetBindingSpec, ManagedClusterSetBindingStatus, ManagedClusterSetSpec,
    ManagedClusterSetStatus, ManagedNamespace, SetSelector,
};
pub use decision::{
    AddOnPlacementScore, AddOnPlacementScoreStatus, AddOnScoreValue, ClusterDecision,
    PlacementDecision, PlacementDecisionStatus,
};
pub use managed_cluster::{
    ClientConfig, ClusterSetNamespace, ClusterVersion, ManagedClusterSpec, ManagedClusterStatus,
    ReportedClaim, Taint,
};
pub use manifest_work::{
    ConditionRule, DeleteOption, Executor, ExecutorSubject, FeedbackRule, FeedbackValue,
    FieldValue, IgnoreField, JsonPath, ManifestCondition, ManifestConfig, ManifestWorkSpec,
    ManifestWorkStatus, ResourceIdentifier, ResourceMeta, ResourceStatus, SelectivelyOrphans,
    ServerSideApply, ServiceAccountSubject, StatusFeedback, UpdateStrategy, Workload,
};
pub use placement::{
    AddOnScore, DecisionGroup, DecisionGroupStatus, DecisionStrategy, GroupStrategy, PlacementSpec,
    PlacementStatus, Predicate, PrioritizerConfig, PrioritizerPolicy, ScoreCoordinate,
    SpreadConstraint, SpreadPolicy, Toleration,
};
pub use replica_set::{
    MandatoryGroup, ManifestWorkReplicaSetSpec, ManifestWorkReplicaSetStatus, PlacementReference,
    PlacementSummary, RolloutAll, RolloutLimits, RolloutProgressive, RolloutProgressivePerGroup,
    RolloutStrategy, Summary,
};
pub use shape::{
    CelSelector, ClaimSelector, ClusterSelector, Condition, GroupClusterSelector, IntOrText, Others,
};

/// The CRDs of this dialect, each with every version it is served in.
pub fn crds() -> Vec<CustomResourceDefinition> {
    crate::definition::read(include_str!("../crds/ocm.jsonl"))
}

#[cfg(test)]
mod tests;
