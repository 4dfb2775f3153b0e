//! The end of a placement: its bindings go, then its snapshots, then its finalizers.

use convoy_api::Object;

use crate::dialect::fleet::names::{self, Family};
use crate::dialect::fleet::read::placement::Placement;
use crate::gate::{self, Candidate, Permit};
use crate::snapshot::Snapshot;

/// What a placement that is being deleted still has.
#[derive(Clone, Debug)]
pub(crate) struct Cleanup<'w> {
    pub(crate) bindings: Vec<&'w Object>,
    /// Snapshots and copies of the status.
    pub(crate) snapshots: Vec<&'w Object>,
    /// What deleting the bindings needs: nothing limits it.
    pub(crate) permit: Option<Permit>,
}

pub(crate) fn decide<'w>(snapshot: &Snapshot<'w>, placement: &Placement<'_>) -> Cleanup<'w> {
    let owned = |kind| snapshot.of(&kind).iter().copied().filter(|it| placement.owns(it));
    let family = placement.family;
    let bindings: Vec<&Object> = owned(placement.binding_kind()).collect();
    let mut snapshots: Vec<&Object> = owned(family.policy_snapshot()).collect();
    snapshots.extend(owned(family.resource_snapshot()));
    if family == Family::Cluster {
        let copies = snapshot.of(&names::PLACEMENT_STATUS).iter().copied();
        snapshots.extend(copies.filter(|copy| copy.name() == placement.name()));
    }
    let live = bindings.iter().enumerate().filter(|(_, binding)| !binding.is_deleting());
    let candidates = live.map(|(at, binding)| Candidate::free(binding.name(), at)).collect();
    let permit = gate::admit(candidates, &[]).permit();
    Cleanup { bindings, snapshots, permit }
}
