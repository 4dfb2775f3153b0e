//! Open Cluster Management: placements cut into decision groups, works rolled through them.
//! The wire types, the names, and the old spellings that are still read.

mod applied_work;
mod claim;
mod cluster_set;
mod decision;
mod managed_cluster;
mod manifest_work;
pub mod names;
mod placement;
mod replica_set;
mod shape;
pub mod spelling;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::json;

pub use applied_work::{
    AppliedManifestWork, AppliedManifestWorkSpec, AppliedManifestWorkStatus, AppliedResource,
};
pub use claim::{ClusterClaim, ClusterClaimSpec};
pub use cluster_set::{
    ManagedClusterSet, ManagedClusterSetBinding, ManagedClusterSetBindingSpec,
    ManagedClusterSetBindingStatus, ManagedClusterSetSpec, ManagedClusterSetStatus,
    ManagedNamespace, SetSelector,
};
pub use decision::{
    AddOnPlacementScore, AddOnPlacementScoreStatus, AddOnScoreValue, ClusterDecision,
    PlacementDecision, PlacementDecisionStatus,
};
pub use managed_cluster::{
    ClientConfig, ClusterSetNamespace, ClusterVersion, ManagedCluster, ManagedClusterSpec,
    ManagedClusterStatus, ReportedClaim, Taint,
};
pub use manifest_work::{
    ConditionRule, DeleteOption, Executor, ExecutorSubject, FeedbackRule, FeedbackValue,
    FieldValue, IgnoreField, JsonPath, ManifestCondition, ManifestConfig, ManifestWork,
    ManifestWorkSpec, ManifestWorkStatus, ResourceIdentifier, ResourceMeta, ResourceStatus,
    SelectivelyOrphans, ServerSideApply, ServiceAccountSubject, StatusFeedback, UpdateStrategy,
    Workload,
};
pub use placement::{
    AddOnScore, DecisionGroup, DecisionGroupStatus, DecisionStrategy, GroupStrategy, Placement,
    PlacementSpec, PlacementStatus, Predicate, PrioritizerConfig, PrioritizerPolicy,
    ScoreCoordinate, SpreadConstraint, SpreadPolicy, Toleration,
};
pub use replica_set::{
    MandatoryGroup, ManifestWorkReplicaSet, ManifestWorkReplicaSetSpec,
    ManifestWorkReplicaSetStatus, PlacementReference, PlacementSummary, RolloutAll, RolloutLimits,
    RolloutProgressive, RolloutProgressivePerGroup, RolloutStrategy, Summary,
};
pub use shape::{
    CelSelector, ClaimSelector, ClusterSelector, Condition, GroupClusterSelector, IntOrText, Others,
};

/// The CRDs of this dialect, each with every version it is served in.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let exclusive = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
    vec![
        ManagedCluster::crd(),
        shape::with_default_spec(ManagedClusterSet::crd(), &exclusive),
        ManagedClusterSetBinding::crd(),
        Placement::crd(),
        PlacementDecision::crd(),
        AddOnPlacementScore::crd(),
        ClusterClaim::crd(),
        ManifestWork::crd(),
        AppliedManifestWork::crd(),
        ManifestWorkReplicaSet::crd(),
    ]
}

#[cfg(test)]
mod tests;
