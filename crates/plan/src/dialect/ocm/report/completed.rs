//! What is told about works that are through.

use convoy_api::Object;

use super::registration::simple;
use crate::dialect::ocm::decide::completed::Completed;
use crate::step::{Action, Step};

/// The step of a work that goes when it is through.
pub(crate) fn work(work: &Object, completed: Completed, actions: Vec<Action>) -> Step {
    let mut step = simple(work, actions, None);
    if let Completed::Until(until) = completed {
        step.wake_at = Some(until);
    }
    step
}
