//! Writes about works that are through.

use convoy_api::Object;

use crate::dialect::ocm::decide::completed::Completed;
use crate::step::{Action, Propagation, Verb, Why};

/// Deletes a work whose time is over.
pub(crate) fn actions(work: &Object, completed: Completed) -> Vec<Action> {
    let Completed::Expired(permit) = completed else { return Vec::new() };
    let why = Why::new("WorkExpired", "it is through, and its ttlSecondsAfterFinished is over");
    vec![Action::delete(Verb::DeleteMember(permit), work, Propagation::Background, why)]
}
