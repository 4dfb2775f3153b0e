//! What a placement asks for, written down: its policy and the hub's objects that it selects,
//! as numbered snapshots that never change.

pub mod group;
pub mod policy;
pub mod select;

use jiff::Timestamp;

use crate::dialect::fleet::decide::selection::group::Decision;
use crate::dialect::fleet::decide::selection::select::SelectionError;
use crate::dialect::fleet::read::placement::{Placement, Strategy};
use crate::dialect::fleet::read::snapshot::ResourceGroup;
use crate::dialect::fleet::report::Part;
use crate::hold::{Hold, HoldReason};
use crate::snapshot::Snapshot;
use crate::step::Verdict;

/// The resource snapshots' part of a placement's step. With an external strategy the update
/// run takes the snapshots; what is selected has to be sound all the same.
pub fn part(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    now: Timestamp,
) -> Result<Part, SelectionError> {
    let mut part = Part::default();
    let decision = match group::decided(snapshot, placement, now, false) {
        Err(error) if error.is_users() => return Err(error),
        _ if placement.strategy == Strategy::External => return Ok(part),
        Err(error) => {
            unobserved(snapshot, placement, &error, &mut part);
            return Ok(part);
        }
        Ok(decision) => decision,
    };
    match decision {
        Decision::Kept { actions, .. } | Decision::Created { actions, .. } => {
            part.actions = actions;
        }
        Decision::Collecting { until, actions } => {
            part.actions = actions;
            part.wake_at = Some(until);
            part.verdict = Some(Verdict::Moving);
        }
    }
    Ok(part)
}

/// A world without a single object of a kind keeps what was selected before.
fn unobserved(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    error: &SelectionError,
    part: &mut Part,
) {
    if ResourceGroup::latest(snapshot, placement).is_some() {
        return;
    }
    let on = format!("resources to select: {error}");
    part.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
    part.verdict = Some(Verdict::Held);
}
