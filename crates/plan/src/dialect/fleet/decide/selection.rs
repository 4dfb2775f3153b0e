//! What a placement asks for, written down: its policy and the hub's objects that it selects,
//! as numbered snapshots that never change.

pub(crate) mod group;
pub(crate) mod policy;
pub(crate) mod select;

use jiff::Timestamp;

use self::group::Decision;
use self::select::SelectionError;
use crate::dialect::fleet::read::placement::{Placement, Strategy};
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::dialect::fleet::read::timings::HubTimings;
use crate::snapshot::Snapshot;

/// What becomes of a placement's resource snapshots.
#[derive(Debug)]
pub(crate) enum Selection<'w> {
    /// They are compared with what is selected now.
    Compared(Decision<'w>),
    /// What is selected cannot be told, and nothing was selected before.
    Unobserved(SelectionError),
    /// Nothing is done: an update run takes the snapshots, or what is selected cannot be told
    /// and what was selected before stays.
    Left,
}

/// With an external strategy the update run takes the snapshots; what is selected has to be
/// sound all the same.
pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'_>,
    timings: HubTimings,
    now: Timestamp,
) -> Result<Selection<'w>, SelectionError> {
    match group::decide(snapshot, placement, now, Some(timings)) {
        Err(error) if error.is_users() => Err(error),
        _ if placement.strategy == Strategy::External => Ok(Selection::Left),
        // A world without a single object of a kind keeps what was selected before.
        Err(_) if ResourceGroup::latest(snapshot, placement).is_some() => Ok(Selection::Left),
        Err(error) => Ok(Selection::Unobserved(error)),
        Ok(decision) => Ok(Selection::Compared(decision)),
    }
}
