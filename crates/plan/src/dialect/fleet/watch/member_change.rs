//! What changed of a member cluster, and who looks at it. Agents report every few seconds, and a
//! fleet has thousands of placements: a report that nobody looks at must not make all of them
//! decide again.

use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;

use crate::dialect::fleet::names::{Family, MEMBER_CLUSTER};
use crate::dialect::fleet::read::member::{heartbeat, is_silent};
use crate::dialect::fleet::read::member_report;
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::read::policy::SchedulingPolicy;
use crate::dialect::fleet::watch::is_own_rollout;
use crate::world::World;

/// The rollouts that look at what an agent reported; None: there is more to the change, or it is
/// no member cluster.
pub(crate) fn affected(
    world: &World,
    before: &Object,
    after: &Object,
    decided_at: Timestamp,
) -> Option<Vec<ObjectKey>> {
    let is_report = *after.kind() == MEMBER_CLUSTER
        && member_report::is_all_that_differs(before, after)
        && was_heard_throughout(before, after, decided_at);
    if !is_report {
        return None;
    }
    let mut found: Vec<ObjectKey> = Vec::new();
    found.extend(is_own_rollout(world, after).then(|| after.key().clone()));
    let properties = !member_report::has_same_properties(before, after);
    let namespaces = !member_report::has_same_namespaces(before, after);
    if properties || namespaces {
        let all = Family::ALL.into_iter().flat_map(|family| world.of(&family.placement()));
        let looks = |placement: &&Object| {
            let is_namespaced = Family::of(placement) == Family::Namespaced;
            namespaces && is_namespaced || properties && reads_properties(placement)
        };
        found.extend(all.filter(looks).map(|placement| placement.key().clone()));
    }
    Some(found)
}

/// Whether no decision so far has found the cluster silent, so that its being heard is no news.
fn was_heard_throughout(before: &Object, after: &Object, decided_at: Timestamp) -> bool {
    !is_silent(before, decided_at) && heartbeat(before) <= heartbeat(after)
}

fn reads_properties(placement: &Object) -> bool {
    Placement::read(placement)
        .is_ok_and(|placement| SchedulingPolicy::read(&placement).reads_properties())
}

#[cfg(test)]
mod tests;
