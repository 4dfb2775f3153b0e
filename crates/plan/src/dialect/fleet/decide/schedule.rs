//! The scheduler: which member clusters a placement gets. Bindings of the active policy are
//! never judged again, so later changes of a cluster do not move anything.

pub(crate) mod classes;
pub(crate) mod cycle;
pub(crate) mod filter;
pub(crate) mod score;

use std::collections::BTreeSet;

use convoy_api::Object;
use jiff::Timestamp;

use self::classes::Classes;
use self::cycle::{Picks, settled};
use crate::dialect::fleet::decide::selection::policy::PolicyHistory;
use crate::dialect::fleet::names::MEMBER_CLUSTER;
use crate::dialect::fleet::read::binding::target;
use crate::dialect::fleet::read::member::trusted_until;
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::snapshot::Snapshot;

/// The bindings of a placement as they are, and the clusters it has afterwards.
#[derive(Debug)]
pub(crate) struct Schedule<'w> {
    pub(crate) classes: Classes<'w>,
    pub(crate) picks: Picks<'w>,
}

/// Decides the placement's clusters.
pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'w>,
    history: &PolicyHistory<'w>,
    now: Timestamp,
) -> Schedule<'w> {
    let clusters = snapshot.of(&MEMBER_CLUSTER);
    let bindings = snapshot.of(&placement.binding_kind()).iter().copied();
    let owned: Vec<&Object> = bindings.filter(|binding| placement.owns(binding)).collect();
    let classes = Classes::sorted(owned, clusters, &history.active_name);
    let picks = settled(placement, clusters, &classes, now);
    Schedule { classes, picks }
}

/// When a cluster that a placement does not have will be out of the question for another reason,
/// unless its agent reports before. Heartbeats make nobody decide again, so the reasons in the
/// policy snapshot's status are looked at again then.
pub(crate) fn reasons_hold_until(snapshot: &Snapshot<'_>, now: Timestamp) -> Option<Timestamp> {
    let placement = Placement::read(snapshot.rollout()).ok()?;
    let bindings = snapshot.of(&placement.binding_kind()).iter();
    let owned = bindings.filter(|binding| placement.owns(binding));
    let has: BTreeSet<&str> = owned.map(|binding| target(binding)).collect();
    let is_missing = |cluster: &&&Object| !has.contains(cluster.name().as_str());
    let is_asked_for = |cluster: &&&Object| match &placement.policy.pick {
        Pick::Fixed(names) => names.contains(cluster.name()),
        Pick::All | Pick::Number(_) => true,
    };
    let clusters = snapshot.of(&MEMBER_CLUSTER).iter().filter(is_missing).filter(is_asked_for);
    clusters.filter_map(|cluster| trusted_until(cluster, now)).min()
}
