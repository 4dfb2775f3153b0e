//! What is told about a placement's resource snapshots.

use crate::dialect::fleet::decide::selection::Selection;
use crate::dialect::fleet::decide::selection::group::Decision;
use crate::dialect::fleet::report::PartialStep;
use crate::hold::{Hold, HoldReason};
use crate::step::Verdict;

pub(crate) fn partial(selection: &Selection<'_>) -> PartialStep {
    let mut partial = PartialStep::default();
    match selection {
        Selection::Compared(Decision::Collecting { until, .. }) => {
            partial.wake_at = Some(*until);
            partial.verdict = Some(Verdict::Moving);
        }
        Selection::Unobserved(error) => {
            let on = format!("resources to select: {error}");
            partial.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
            partial.verdict = Some(Verdict::Held);
        }
        // There is nothing to do about it, and nobody wants it so.
        Selection::Compared(decision) if decision.selects_nothing() => {
            let detail = "no object matches spec.resourceSelectors".to_owned();
            partial.holds.push(Hold::of_rollout(HoldReason::NotSelected { detail }));
        }
        Selection::Compared(_) | Selection::Left => {}
    }
    partial
}
