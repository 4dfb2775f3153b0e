//! The Endpoints and EndpointSlices of a Service, as they are written.

mod mirror;
mod object;
mod slices;

use super::decide::Course;
use crate::snapshot::Snapshot;
use crate::step::{Action, Propagation, Verb, Why};

/// What is written for a rollout.
pub(super) fn actions(snapshot: &Snapshot<'_>, course: &Course<'_>) -> Vec<Action> {
    match course {
        Course::LeaveAlone => Vec::new(),
        Course::Remove => {
            let why = Why::new("ServiceGone", "their Service is gone");
            let propagation = Propagation::Background;
            vec![Action::delete(Verb::Delete, snapshot.rollout(), propagation, why)]
        }
        Course::Mirror => mirror::writes(snapshot),
        Course::List(backends) => {
            let mut actions = object::writes(snapshot, backends);
            actions.extend(slices::of_pods(snapshot, backends));
            actions
        }
    }
}
