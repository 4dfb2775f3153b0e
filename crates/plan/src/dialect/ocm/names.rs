//! Condition types and reasons that upstream fixes. Kinds, labels and annotations are in
//! `convoy_api::ocm::names`, because other crates need them too.

/// The name of the dialect.
pub(crate) const DIALECT: &str = "ocm";

/// The most characters that a label value may have.
pub(crate) const LABEL_VALUE_MAX: usize = 63;
/// The field at fault where a name does not fit.
pub(crate) const NAME_FIELD: &str = "metadata.name";

/// Conditions of a placement.
pub(crate) const PLACEMENT_SATISFIED: &str = "PlacementSatisfied";
pub(crate) const PLACEMENT_MISCONFIGURED: &str = "PlacementMisconfigured";

/// Conditions of a replica set.
pub(crate) const PLACEMENT_VERIFIED: &str = "PlacementVerified";
pub(crate) const PLACEMENT_ROLLED_OUT: &str = "PlacementRolledOut";
pub(crate) const MANIFEST_WORK_APPLIED: &str = "ManifestworkApplied";

/// Reasons of these conditions.
pub(crate) const AS_EXPECTED: &str = "AsExpected";
pub(crate) const NOT_AS_EXPECTED: &str = "NotAsExpected";
pub(crate) const PLACEMENT_DECISION_EMPTY: &str = "PlacementDecisionEmpty";
pub(crate) const PLACEMENT_DECISION_NOT_FOUND: &str = "PlacementDecisionNotFound";
pub(crate) const INVALID_MANIFEST_WORK_NAME: &str = "InvalidManifestWorkName";
pub(crate) const NOT_ALL_DECISIONS_SCHEDULED: &str = "NotAllDecisionsScheduled";

/// Conditions of a work, as its agent reports them.
pub(crate) const APPLIED: &str = "Applied";
pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const PROGRESSING: &str = "Progressing";
pub(crate) const DEGRADED: &str = "Degraded";
pub(crate) const COMPLETE: &str = "Complete";

/// Finalizers of a managed cluster: its rights, and what lies in its namespace.
pub(crate) const CLUSTER_FINALIZER: &str =
    "cluster.open-cluster-management.io/api-resource-cleanup";
pub(crate) const CLEANUP_FINALIZER: &str = "cluster.open-cluster-management.io/resource-cleanup";
/// Finalizer of works, and of what lets an agent delete them.
pub(crate) const WORK_FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
/// On what belongs to a managed cluster.
pub(crate) const CLUSTER_NAME_LABEL: &str = "open-cluster-management.io/cluster-name";
/// On what lies in a cluster's namespace: 0 to 100, the lowest is deleted first.
pub(crate) const CLEANUP_PRIORITY: &str = "open-cluster-management.io/cleanup-priority";
/// On a cluster: `"true"` takes its clock as synchronized.
pub(crate) const SKIP_CLOCK_CHECK: &str =
    "registration.open-cluster-management.io/skip-clock-sync-check";
/// On a built-in set: `"false"` leaves it as it is.
pub(crate) const AUTO_UPDATE: &str = "cluster.open-cluster-management.io/autoupdate";
/// The set that every cluster belongs to.
pub(crate) const GLOBAL_CLUSTER_SET: &str = "global";

/// The Lease that an agent renews, in the namespace of its cluster.
pub(crate) const CLUSTER_LEASE: &str = "managed-cluster-lease";
pub(crate) const UNAVAILABLE_TAINT: &str = "cluster.open-cluster-management.io/unavailable";
pub(crate) const UNREACHABLE_TAINT: &str = "cluster.open-cluster-management.io/unreachable";

/// Conditions of a managed cluster.
pub(crate) const HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
pub(crate) const CLUSTER_AVAILABLE: &str = "ManagedClusterConditionAvailable";
pub(crate) const CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
pub(crate) const DELETING: &str = "Deleting";
