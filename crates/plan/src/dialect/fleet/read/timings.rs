//! How long a hub waits. Each is a flag of upstream's hub agent, with its default.

use jiff::SignedDuration;

/// The waits of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubTimings {
    /// How long a leaving member is given to answer.
    pub force_delete: SignedDuration,
    /// The least time between two resource snapshots of a placement.
    pub snapshot_interval: SignedDuration,
    /// How long changes of selected objects are collected into one resource snapshot.
    pub collecting: SignedDuration,
}

impl HubTimings {
    pub const fn new() -> Self {
        Self {
            force_delete: SignedDuration::from_mins(15),
            snapshot_interval: SignedDuration::from_secs(30),
            collecting: SignedDuration::from_secs(15),
        }
    }
}

impl Default for HubTimings {
    fn default() -> Self {
        Self::new()
    }
}
