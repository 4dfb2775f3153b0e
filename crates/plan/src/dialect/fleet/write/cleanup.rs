//! The writes that delete what belongs to a placement, and let the placement go.

use super::schedule;
use crate::dialect::fleet::decide::cleanup::Cleanup;
use crate::dialect::fleet::names::{PLACEMENT_CLEANUP, SCHEDULER_CLEANUP};
use crate::dialect::fleet::read::placement::Placement;
use crate::finalizer;
use crate::step::{Action, Propagation, Verb, Why};

pub(crate) fn actions(cleanup: &Cleanup<'_>, placement: &Placement<'_>) -> Vec<Action> {
    let deleted = |verb| {
        let message = format!("placement {} is being deleted", placement.name());
        move |object: &&convoy_api::Object| {
            let why = Why::new("PlacementDeleted", message.clone());
            Action::delete(verb, object, Propagation::Background, why)
        }
    };
    let leaving = cleanup.bindings.iter().filter(|binding| binding.is_deleting());
    let mut actions: Vec<Action> =
        leaving.filter_map(|binding| schedule::released(binding)).collect();
    if let Some(permit) = cleanup.permit {
        let live = cleanup.bindings.iter().filter(|binding| !binding.is_deleting());
        actions.extend(live.map(deleted(Verb::Remove(permit))));
    }
    let live = cleanup.snapshots.iter().filter(|snapshot| !snapshot.is_deleting());
    actions.extend(live.map(deleted(Verb::Delete)));
    let mut done = Vec::new();
    if cleanup.bindings.is_empty() {
        done.push(SCHEDULER_CLEANUP);
    }
    if cleanup.snapshots.is_empty() {
        done.push(PLACEMENT_CLEANUP);
    }
    let why = Why::new("PlacementCleaned", "its bindings and snapshots are deleted");
    actions.extend(finalizer::removed(placement.object, &done, why));
    actions
}

/// Adds the finalizers that make the clean-up happen.
pub(crate) fn guarded(placement: &Placement<'_>) -> Option<Action> {
    let message = "its bindings and snapshots are to be deleted with it";
    let why = Why::new("PlacementGuarded", message);
    finalizer::added(placement.object, &[PLACEMENT_CLEANUP, SCHEDULER_CLEANUP], why)
}
