//! Who says where a Service leads: its selector, or somebody else.

use convoy_api::kinds::ENDPOINTS;

use super::read::{Backend, is_external, selector};
use crate::snapshot::Snapshot;

/// What becomes of the endpoints of a rollout.
pub(super) enum Course<'o> {
    /// They are not ours.
    LeaveAlone,
    /// Their Service is gone.
    Remove,
    /// Somebody else writes them, and slices follow.
    Mirror,
    /// They are the pods that the Service selects.
    List(Vec<Backend<'o>>),
}

pub(super) fn course<'o>(snapshot: &Snapshot<'o>) -> Course<'o> {
    let rollout = snapshot.rollout();
    if *rollout.kind() == ENDPOINTS {
        Course::Remove
    } else if rollout.is_deleting() || is_external(rollout) {
        Course::LeaveAlone
    } else if selector(rollout).is_none() {
        Course::Mirror
    } else {
        Course::List(Backend::all(snapshot))
    }
}
