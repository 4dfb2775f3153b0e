//! The kinds, labels, annotations and finalizers of the fleet API. The cluster-scoped and the
//! namespaced family are one machine under two sets of kinds: [`Family`] tells them apart.

pub(crate) mod kind;

use std::fmt::Display;

use convoy_api::{GroupKind, Object};
use smol_str::{SmolStr, format_smolstr};

/// The word that plans and `--dialects` use.
pub const DIALECT: &str = "fleet";

pub use convoy_api::fleet::{PARENT, PLACEMENT_GROUP};
pub use convoy_api::well_known::label::NAMESPACE_NAME;
pub const CLUSTER_GROUP: &str = "cluster.kubernetes-fleet.io";

/// The group of fleet networking, which other agents serve.
pub const NETWORKING_GROUP: &str = "networking.fleet.azure.com";

pub const MEMBER_CLUSTER: GroupKind = GroupKind::new(CLUSTER_GROUP, "MemberCluster");
pub const INTERNAL_MEMBER_CLUSTER: GroupKind =
    GroupKind::new(CLUSTER_GROUP, "InternalMemberCluster");

/// A cluster as the cluster inventory API describes it.
pub const CLUSTER_PROFILE: GroupKind = GroupKind::new("multicluster.x-k8s.io", "ClusterProfile");
pub const CLUSTER_PROFILE_API: &str = "multicluster.x-k8s.io/v1alpha1";

/// The namespace of the hub agent, where ClusterProfiles are.
pub const SYSTEM_NAMESPACE: &str = "fleet-system";

/// The name by which ClusterProfiles say whose they are, and the label that says so too.
pub const CLUSTER_MANAGER: &str = "KubeFleet";
pub const CLUSTER_MANAGER_LABEL: &str = "x-k8s.io/cluster-manager";

/// Properties that an agent with a property provider reports, beside numbers.
pub const KUBERNETES_VERSION: &str = "k8s.io/k8s-version";
pub const ENTRY_POINT: &str = "k8s.io/cluster-entrypoint";
pub const CERTIFICATE_AUTHORITY: &str = "k8s.io/cluster-certificate-authority-data";

/// Conditions of a cluster whose agent has a property provider.
pub const PROVIDER_STARTED: &str = "ClusterPropertyProviderStarted";
pub const PROPERTIES_COLLECTED: &str = "ClusterPropertyCollectionSucceeded";
pub const NAMESPACES_COLLECTED: &str = "NamespaceCollectionSucceeded";

pub const EVICTION: GroupKind = placement("ClusterResourcePlacementEviction");
pub const DISRUPTION_BUDGET: GroupKind = placement("ClusterResourcePlacementDisruptionBudget");
pub const CLUSTER_OVERRIDE: GroupKind = placement("ClusterResourceOverride");
pub const CLUSTER_OVERRIDE_SNAPSHOT: GroupKind = placement("ClusterResourceOverrideSnapshot");
pub const OVERRIDE: GroupKind = placement("ResourceOverride");
pub const OVERRIDE_SNAPSHOT: GroupKind = placement("ResourceOverrideSnapshot");
pub const CLUSTER_ENVELOPE: GroupKind = placement("ClusterResourceEnvelope");
pub const ENVELOPE: GroupKind = placement("ResourceEnvelope");
pub const PLACEMENT_STATUS: GroupKind = placement("ClusterResourcePlacementStatus");
pub const WORK: GroupKind = placement("Work");

/// The API group of another dialect.
pub const SKYHOOK_GROUP: &str = "skyhook.nvidia.com";

/// Where the rights of member agents are kept.
pub use convoy_api::kinds::{RBAC_GROUP as RBAC, ROLE, ROLE_BINDING};

/// The kinds that lie in a member's namespace and matter here.
pub const IN_MEMBER_NAMESPACE: [GroupKind; 4] = [INTERNAL_MEMBER_CLUSTER, ROLE, ROLE_BINDING, WORK];

/// What the namespace of a member on the hub begins with.
pub const MEMBER_NAMESPACE_PREFIX: &str = "fleet-member-";

/// Labels.
pub const LATEST: &str = "kubernetes-fleet.io/is-latest-snapshot";
pub const POLICY_INDEX: &str = "kubernetes-fleet.io/policy-index";
pub const RESOURCE_INDEX: &str = "kubernetes-fleet.io/resource-index";
pub const PARENT_OVERRIDE: &str = "kubernetes-fleet.io/parent-resource-override";
pub const OVERRIDE_INDEX: &str = "kubernetes-fleet.io/override-index";
pub const MEMBER_NAME: &str = "kubernetes-fleet.io/member-name";
pub const TARGET_RUN: &str = "kubernetes-fleet.io/targetUpdateRun";
pub const TARGET_STAGE: &str = "kubernetes-fleet.io/targetUpdatingStage";
pub const TASK_TYPE: &str = "kubernetes-fleet.io/taskType";
pub const LATEST_APPROVAL: &str = "kubernetes-fleet.io/isLatestUpdateRunApproval";

pub const FLEET_RESOURCE: &str = "kubernetes-fleet.io/is-fleet-resource";

/// Labels of Works: where they come from.
pub const PARENT_BINDING: &str = "kubernetes-fleet.io/parent-resource-binding";
pub const PARENT_SNAPSHOT_INDEX: &str = "kubernetes-fleet.io/parent-resource-snapshot-index";
pub const PARENT_NAMESPACE: &str = "kubernetes-fleet.io/parent-placement-namespace";
pub const ENVELOPE_WORK: &str = "kubernetes-fleet.io/envelope-work";
pub const ENVELOPE_NAME: &str = "kubernetes-fleet.io/envelope-name";
pub const ENVELOPE_NAMESPACE: &str = "kubernetes-fleet.io/envelope-namespace";

/// What properties that are computed from resources begin with.
pub const RESOURCE_PROPERTY_PREFIX: &str = "resources.kubernetes-fleet.io/";

/// What labels begin with that belong to the fleet, and that everybody may set on member clusters.
pub const FLEET_LABELS: &str = "kubernetes-fleet.io/";

/// An annotation that begins so makes a member cluster one that the guard rail guards.
pub const FLEET_ANNOTATIONS: &str = "fleet.azure.com";

/// Annotations.
pub const GENERATION: &str = "kubernetes-fleet.io/CRP-generation";
pub const NUMBER_OF_CLUSTERS: &str = "kubernetes-fleet.io/number-of-clusters";
pub const RESOURCE_HASH: &str = "kubernetes-fleet.io/resource-hash";
pub const NUMBER_OF_SNAPSHOTS: &str = "kubernetes-fleet.io/number-of-resource-snapshots";
pub const NUMBER_OF_ENVELOPED: &str = "kubernetes-fleet.io/number-of-enveloped-object";
pub const SUB_INDEX: &str = "kubernetes-fleet.io/subindex-of-resource-snapshot";
pub const CANDIDATE_SEEN: &str =
    "kubernetes-fleet.io/next-resource-snapshot-candidate-detection-time";
pub const PREVIOUS_STATE: &str = "kubernetes-fleet.io/previous-binding-state";
pub const PARENT_SNAPSHOT_NAME: &str = "kubernetes-fleet.io/parent-resource-snapshot-name";
pub const PARENT_OVERRIDES_HASH: &str =
    "kubernetes-fleet.io/parent-resource-override-snapshot-hash";
pub const PARENT_CLUSTER_OVERRIDES_HASH: &str =
    "kubernetes-fleet.io/parent-cluster-resource-override-snapshot-hash";

/// Finalizers.
pub const PLACEMENT_CLEANUP: &str = "kubernetes-fleet.io/crp-cleanup";
pub const SCHEDULER_CLEANUP: &str = "kubernetes-fleet.io/scheduler-cleanup";
pub const BINDING_CLEANUP: &str = "kubernetes-fleet.io/scheduler-crb-cleanup";
pub const RUN_CLEANUP: &str = "kubernetes-fleet.io/stagedupdaterun-finalizer";
/// The condition of a member cluster that the hub has made room for.
pub const READY_TO_JOIN: &str = "ReadyToJoin";
pub const MEMBER_CLEANUP: &str = "kubernetes-fleet.io/membercluster-finalizer";
pub const PROFILE_CLEANUP: &str = "kubernetes-fleet.io/cluster-profile-cleanup";
pub const WORK_CLEANUP: &str = "kubernetes-fleet.io/work-cleanup";
pub const OVERRIDE_CLEANUP: &str = "kubernetes-fleet.io/override-cleanup";

/// Condition types of update runs, their stages, clusters and tasks.
pub const INITIALIZED: &str = "Initialized";
pub const PROGRESSING: &str = "Progressing";
pub const SUCCEEDED: &str = "Succeeded";
pub const STARTED: &str = "Started";

/// The name of the stage that takes resources off clusters.
pub const DELETE_STAGE: &str = "kubernetes-fleet.io/deleteStage";
pub const APPROVED: &str = "Approved";
pub const ACCEPTED: &str = "ApprovalAccepted";
pub const REQUEST_CREATED: &str = "ApprovalRequestCreated";
pub const REQUEST_APPROVED: &str = "ApprovalRequestApproved";
pub const WAIT_TIME_ELAPSED: &str = "WaitTimeElapsed";

/// Condition types of evictions.
pub const VALID: &str = "Valid";
pub const EXECUTED: &str = "Executed";

/// Condition types of bindings.
pub const ROLLOUT_STARTED: &str = "RolloutStarted";
pub const OVERRIDDEN: &str = "Overridden";
pub const WORK_SYNCHRONIZED: &str = "WorkSynchronized";
pub const APPLIED: &str = "Applied";
pub const AVAILABLE: &str = "Available";
pub const DIFF_REPORTED: &str = "DiffReported";

/// Which of the two parallel sets of kinds a rollout belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// `ClusterResourcePlacement` and what belongs to it.
    Cluster,
    /// `ResourcePlacement` and what belongs to it, all in the placement's namespace.
    Namespaced,
}

/// What a rollout object of this dialect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RolloutKind {
    Placement(Family),
    Run(Family),
    /// A binding, whose Works carry the resources to its cluster.
    Binding(Family),
    Eviction,
    Override,
    /// A cluster that joins or leaves.
    Member,
}

impl RolloutKind {
    /// None: the object is not of the fleet's own rollout kinds.
    pub(crate) fn of(kind: &GroupKind) -> Option<Self> {
        let of_family = |family: Family| {
            if *kind == family.placement() {
                Some(Self::Placement(family))
            } else if *kind == family.binding() {
                Some(Self::Binding(family))
            } else {
                (*kind == family.run()).then_some(Self::Run(family))
            }
        };
        Family::ALL.into_iter().find_map(of_family).or_else(|| {
            let overrides = *kind == CLUSTER_OVERRIDE || *kind == OVERRIDE;
            if overrides {
                Some(Self::Override)
            } else if *kind == MEMBER_CLUSTER {
                Some(Self::Member)
            } else {
                (*kind == EVICTION).then_some(Self::Eviction)
            }
        })
    }
}

impl Family {
    pub const ALL: [Self; 2] = [Self::Cluster, Self::Namespaced];

    /// The family of an object whose kind exists in both.
    pub fn of(object: &Object) -> Self {
        if object.namespace().is_empty() { Self::Cluster } else { Self::Namespaced }
    }

    pub const fn placement(self) -> GroupKind {
        self.kind("ClusterResourcePlacement", "ResourcePlacement")
    }

    pub const fn binding(self) -> GroupKind {
        self.kind("ClusterResourceBinding", "ResourceBinding")
    }

    pub const fn resource_snapshot(self) -> GroupKind {
        self.kind("ClusterResourceSnapshot", "ResourceSnapshot")
    }

    pub const fn policy_snapshot(self) -> GroupKind {
        self.kind("ClusterSchedulingPolicySnapshot", "SchedulingPolicySnapshot")
    }

    pub const fn run(self) -> GroupKind {
        self.kind("ClusterStagedUpdateRun", "StagedUpdateRun")
    }

    pub const fn strategy(self) -> GroupKind {
        self.kind("ClusterStagedUpdateStrategy", "StagedUpdateStrategy")
    }

    pub const fn approval_request(self) -> GroupKind {
        self.kind("ClusterApprovalRequest", "ApprovalRequest")
    }

    /// What condition types of a placement begin with.
    pub const fn condition_prefix(self) -> &'static str {
        match self {
            Self::Cluster => "ClusterResourcePlacement",
            Self::Namespaced => "ResourcePlacement",
        }
    }

    const fn kind(self, cluster: &'static str, namespaced: &'static str) -> GroupKind {
        placement(match self {
            Self::Cluster => cluster,
            Self::Namespaced => namespaced,
        })
    }
}

/// The namespace on the hub where everything about a member lies.
pub fn member_namespace(cluster: &str) -> String {
    format!("{MEMBER_NAMESPACE_PREFIX}{cluster}")
}

/// The version of the fleet's own kinds that has all their fields; empty for other kinds.
pub fn version(kind: &GroupKind) -> &'static str {
    let is_own = kind.group == PLACEMENT_GROUP || kind.group == CLUSTER_GROUP;
    if is_own { "v1beta1" } else { "" }
}

/// The kind of an override's snapshots.
pub fn override_snapshot_kind(overrides: &GroupKind) -> GroupKind {
    if *overrides == CLUSTER_OVERRIDE { CLUSTER_OVERRIDE_SNAPSHOT } else { OVERRIDE_SNAPSHOT }
}

/// Whether a snapshot object is the newest of its line.
pub fn is_latest(snapshot: &Object) -> bool {
    snapshot.label(LATEST) == Some("true")
}

/// Whether a resource snapshot is the master of its group: it alone carries the hash.
pub fn is_master(snapshot: &Object) -> bool {
    snapshot.annotation(RESOURCE_HASH).is_some() || snapshot.label(LATEST).is_some()
}

/// The index that a label carries; what cannot be read has none.
pub fn index(object: &Object, label: &str) -> Option<u32> {
    object.label(label)?.parse().ok()
}

const fn placement(kind: &'static str) -> GroupKind {
    GroupKind::new(PLACEMENT_GROUP, kind)
}

/// The name of part `number` of the resource snapshots of one index; 0 is the master.
pub fn resource_snapshot_name(placement: &str, index: impl Display, number: usize) -> SmolStr {
    match number.checked_sub(1) {
        None => format_smolstr!("{placement}-{index}-snapshot"),
        Some(sub) => format_smolstr!("{placement}-{index}-{sub}"),
    }
}
