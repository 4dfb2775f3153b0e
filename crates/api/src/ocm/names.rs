//! Kinds, labels, annotations and finalizers of Open Cluster Management, and Convoy's own
//! annotations on its objects.

use crate::object::GroupKind;

pub const CLUSTER_GROUP: &str = "cluster.open-cluster-management.io";
pub const WORK_GROUP: &str = "work.open-cluster-management.io";

pub const MANAGED_CLUSTER: GroupKind = GroupKind::new(CLUSTER_GROUP, "ManagedCluster");
pub const MANAGED_CLUSTER_SET: GroupKind = GroupKind::new(CLUSTER_GROUP, "ManagedClusterSet");
pub const MANAGED_CLUSTER_SET_BINDING: GroupKind =
    GroupKind::new(CLUSTER_GROUP, "ManagedClusterSetBinding");
pub const PLACEMENT: GroupKind = GroupKind::new(CLUSTER_GROUP, "Placement");
pub const PLACEMENT_DECISION: GroupKind = GroupKind::new(CLUSTER_GROUP, "PlacementDecision");
pub const ADD_ON_PLACEMENT_SCORE: GroupKind = GroupKind::new(CLUSTER_GROUP, "AddOnPlacementScore");
pub const CLUSTER_CLAIM: GroupKind = GroupKind::new(CLUSTER_GROUP, "ClusterClaim");
pub const MANIFEST_WORK: GroupKind = GroupKind::new(WORK_GROUP, "ManifestWork");
pub const APPLIED_MANIFEST_WORK: GroupKind = GroupKind::new(WORK_GROUP, "AppliedManifestWork");
pub const MANIFEST_WORK_REPLICA_SET: GroupKind =
    GroupKind::new(WORK_GROUP, "ManifestWorkReplicaSet");

/// On a cluster: the exclusive set it belongs to.
pub const CLUSTER_SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
/// The set of clusters that nobody put into another.
pub const DEFAULT_CLUSTER_SET: &str = "default";

/// On a decision: the placement it belongs to.
pub const PLACEMENT_LABEL: &str = "cluster.open-cluster-management.io/placement";
/// On a decision: the number of its group, today's spelling and the seed's.
pub const GROUP_INDEX_LABELS: [&str; 2] = [
    "cluster.open-cluster-management.io/decision-group-index",
    "cluster.open-cluster-management.io/decisiongroupindex",
];
/// On a decision: the name of its group, today's spelling and the seed's.
pub const GROUP_NAME_LABELS: [&str; 2] = [
    "cluster.open-cluster-management.io/decision-group-name",
    "cluster.open-cluster-management.io/decisiongroupname",
];
/// On a placement: `"true"` makes the scheduler leave it alone.
pub const SCHEDULING_DISABLED: &str =
    "cluster.open-cluster-management.io/experimental-scheduling-disable";

/// On a work: `namespace.name` of the replica set that made it.
pub const REPLICA_SET_LABEL: &str = "work.open-cluster-management.io/manifestworkreplicaset";
/// On a work: the placement it was made for.
pub const PLACEMENT_NAME_LABEL: &str = "work.open-cluster-management.io/placementname";
/// On a replica set: its works are deleted before it goes.
pub const REPLICA_SET_FINALIZER: &str = "work.open-cluster-management.io/manifest-work-cleanup";

/// On a decision: the group strategy it was cut with, so that a changed one is noticed.
pub const STRATEGY_HASH: &str = "convoy.dev/group-strategy-hash";
/// On a placement: `compact` cuts the groups anew every time, as upstream does, instead of
/// keeping clusters where they are.
pub const REGROUP: &str = "convoy.dev/regroup";
/// On a work: when its present template was handed to the cluster.
pub const HANDED_OUT_AT: &str = "convoy.dev/handed-out-at";

/// The most clusters that one `PlacementDecision` lists.
pub const CLUSTERS_PER_DECISION: usize = 100;
