//! Which placement moves first, where several leave a cluster that they share.
//!
//! Balance makes a placement leave a cluster that others use. Two placements that share one
//! would both leave it, meet again on the next and go on like this for ever, if each decided
//! without the other. So of those that share a cluster and would leave it for a better score
//! alone, the first by name goes; the rest look again at what that changed.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::ocm::names::PLACEMENT;
use jiff::Timestamp;

use super::schedule::{Schedule, schedule};
use crate::dialect::ocm::read::decisions::Decisions;
use crate::dialect::ocm::read::placement::{Policy, Prioritizer, Weighted, is_disabled};
use crate::snapshot::Snapshot;

/// The placement that moves before this one may, if there is one.
pub(super) fn moves_first<'w>(
    snapshot: &Snapshot<'w>,
    policy: &Policy,
    current: &Decisions<'_>,
    wanted: &Schedule<'_>,
    now: Timestamp,
) -> Option<&'w Object> {
    if !is_move_for_score(policy, current, wanted) {
        return None;
    }
    let order = |placement: &'w Object| (placement.namespace(), placement.name());
    let placement = snapshot.rollout();
    let mut earlier = snapshot.of(&PLACEMENT).iter().copied();
    earlier.find(|other| {
        let takes_part = !other.is_deleting() && !is_disabled(other);
        if !takes_part || order(other) >= (placement.namespace(), placement.name()) {
            return false;
        }
        let theirs = Decisions::read(snapshot, other);
        let shared = left(current, wanted).any(|cluster| theirs.holds(cluster));
        let Some(policy) = Policy::read(other).ok().filter(|_| shared) else { return false };
        let wanted = schedule(snapshot, other, &policy, &theirs, now);
        wanted.eligibility.error.is_none() && is_move_for_score(&policy, &theirs, &wanted)
    })
}

/// Whether every decided cluster could stay, and others are chosen only because of balance.
fn is_move_for_score(policy: &Policy, current: &Decisions<'_>, wanted: &Schedule<'_>) -> bool {
    let balances = |one: &Weighted| one.prioritizer == Prioritizer::Balance && one.weight != 0;
    if !policy.prioritizers.iter().any(balances) || current.len() != wanted.selected.len() {
        return false;
    }
    let mut leaving = left(current, wanted).peekable();
    let is_moving = leaving.peek().is_some();
    let feasible: BTreeSet<&str> = wanted.scores.iter().map(|(name, _)| &**name).collect();
    is_moving && leaving.all(|cluster| feasible.contains(cluster))
}

/// The clusters that are decided and would no longer be.
fn left<'a>(current: &'a Decisions<'_>, wanted: &'a Schedule<'_>) -> impl Iterator<Item = &'a str> {
    let chosen: BTreeSet<&str> = wanted.selected.iter().map(|it| it.name().as_str()).collect();
    current.clusters().filter(move |cluster| !chosen.contains(cluster))
}
