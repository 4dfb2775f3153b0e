//! How the hub works, beyond what its objects say: upstream's hub agent has a flag for each.

use jiff::SignedDuration;

/// How long the hub waits, and what it takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// At least so long between two snapshots of one placement.
    pub snapshot_interval: SignedDuration,
    /// So long changes are collected after the first difference was seen.
    pub changes_collection: SignedDuration,
    /// So long a leaving member is given to answer.
    pub force_delete_wait: SignedDuration,
    /// Whether workloads run on the hub itself. The volume claims there are those of its own
    /// StatefulSets then, and are not taken along.
    pub runs_workloads: bool,
    /// Whether each member gets a ClusterProfile, where the hub serves that kind.
    pub has_cluster_profiles: bool,
    /// A ClusterProfile says that its cluster is not healthy when nothing was heard for so long.
    pub unhealthy_threshold: SignedDuration,
    /// Whether a member cluster that is not given is not there: a hub sees all of them, files may
    /// leave them out.
    pub sees_all_clusters: bool,
    /// Who may write the objects of the fleet itself; None: whoever RBAC lets.
    pub guard_rail: Option<&'static GuardRail>,
}

/// The exceptions of the guard rail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardRail {
    /// Users who may write everything, beside administrators.
    pub users: Vec<String>,
    /// Whether labels of member clusters are kept from users too.
    pub denies_labels: bool,
}

impl Options {
    /// Nothing is waited for.
    pub const AT_ONCE: Self = Self {
        snapshot_interval: SignedDuration::ZERO,
        changes_collection: SignedDuration::ZERO,
        force_delete_wait: SignedDuration::ZERO,
        runs_workloads: false,
        has_cluster_profiles: true,
        unhealthy_threshold: SignedDuration::from_secs(60),
        sees_all_clusters: true,
        guard_rail: None,
    };

    /// The same hub, where nothing is waited for.
    pub(crate) const fn at_once(self) -> Self {
        Self {
            snapshot_interval: SignedDuration::ZERO,
            changes_collection: SignedDuration::ZERO,
            force_delete_wait: SignedDuration::ZERO,
            ..self
        }
    }

    /// Those of upstream.
    pub const fn new() -> Self {
        Self {
            snapshot_interval: SignedDuration::from_secs(30),
            changes_collection: SignedDuration::from_secs(15),
            force_delete_wait: SignedDuration::from_mins(15),
            ..Self::AT_ONCE
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
