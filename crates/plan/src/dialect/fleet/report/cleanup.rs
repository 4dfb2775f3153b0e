//! What is told about a placement that is being deleted.

use super::PartialStep;
use crate::dialect::fleet::decide::cleanup::Cleanup;
use crate::hold::{Hold, HoldReason};
use crate::step::{Action, Verdict};

/// `actions` are those of the clean-up. Where nothing is left to write, it says what it waits for.
pub(crate) fn partial(cleanup: &Cleanup<'_>, actions: Vec<Action>) -> PartialStep {
    let mut partial = PartialStep { actions, ..PartialStep::default() };
    if !partial.actions.is_empty() {
        return partial;
    }
    let mut left = cleanup.bindings.iter().chain(&cleanup.snapshots);
    let count = left.clone().count();
    let on = match left.next() {
        Some(first) => {
            let kind = &first.kind().kind;
            format!("deletion of {count} objects, the first is {kind} {}", first.name())
        }
        None => "the finalizers of others".to_owned(),
    };
    partial.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
    partial.verdict = Some(Verdict::Held);
    partial
}
