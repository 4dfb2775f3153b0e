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
}

impl Options {
    /// Nothing is waited for.
    pub const AT_ONCE: Self = Self {
        snapshot_interval: SignedDuration::ZERO,
        changes_collection: SignedDuration::ZERO,
        force_delete_wait: SignedDuration::ZERO,
        runs_workloads: false,
    };

    /// The same hub, where nothing is waited for.
    pub(crate) const fn at_once(self) -> Self {
        Self { runs_workloads: self.runs_workloads, ..Self::AT_ONCE }
    }

    /// Those of upstream.
    pub const fn new() -> Self {
        Self {
            snapshot_interval: SignedDuration::from_secs(30),
            changes_collection: SignedDuration::from_secs(15),
            force_delete_wait: SignedDuration::from_mins(15),
            runs_workloads: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
