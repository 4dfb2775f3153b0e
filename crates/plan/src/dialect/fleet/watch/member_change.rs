//! What changed of a member cluster, and who looks at it. Agents report every few seconds, and a
//! fleet has thousands of placements: a report that nobody looks at must not make all of them
//! decide again.

use convoy_api::{Object, ObjectKey};
use jiff::Timestamp;
use serde_json::Value;

use crate::dialect::fleet::names::{Family, MEMBER_CLUSTER};
use crate::dialect::fleet::read::member::{HEARTBEAT, heartbeat, is_silent};
use crate::dialect::fleet::read::placement::{Placement, field, list};
use crate::dialect::fleet::read::policy::SchedulingPolicy;
use crate::dialect::fleet::watch::is_own_rollout;
use crate::world::World;

/// The instant at which a property or the usage was looked at, which decides nothing.
const OBSERVED_AT: &str = "observationTime";

/// The rollouts that look at what an agent reported; None: there is more to the change, or it is
/// no member cluster.
pub(crate) fn affected(
    world: &World,
    before: &Object,
    after: &Object,
    decided_at: Timestamp,
) -> Option<Vec<ObjectKey>> {
    let is_report = *after.kind() == MEMBER_CLUSTER
        && before.spec() == after.spec()
        && is_same_but(before.metadata(), after.metadata(), &METADATA)
        && is_same_but(before.status(), after.status(), &[AGENTS, PROPERTIES, USAGE, SPACES])
        && has_same_agents(before, after)
        && was_heard_throughout(before, after, decided_at);
    if !is_report {
        return None;
    }
    let mut found: Vec<ObjectKey> = Vec::new();
    found.extend(is_own_rollout(world, after).then(|| after.key().clone()));
    let is_same = |name: &str| is_same_reading(before, after, name);
    let properties = !is_same(PROPERTIES) || !is_same(USAGE);
    let namespaces = !is_same(SPACES);
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

/// Metadata that every write changes.
const METADATA: [&str; 3] = ["resourceVersion", "generation", "managedFields"];

/// What a cluster reports about itself.
const AGENTS: &str = "agentStatus";
const PROPERTIES: &str = "properties";
const USAGE: &str = "resourceUsage";
const SPACES: &str = "namespaces";

/// Whether no decision so far has found the cluster silent, so that its being heard is no news.
fn was_heard_throughout(before: &Object, after: &Object, decided_at: Timestamp) -> bool {
    !is_silent(before, decided_at) && heartbeat(before) <= heartbeat(after)
}

fn has_same_agents(before: &Object, after: &Object) -> bool {
    let [one, other] = [before, after].map(|object| list(object.status(), AGENTS));
    let pairs = || one.iter().zip(other);
    one.len() == other.len() && pairs().all(|(one, other)| is_same_but(one, other, &[HEARTBEAT]))
}

/// Whether a part of the status says the same, be it seen at another time.
fn is_same_reading(before: &Object, after: &Object, name: &str) -> bool {
    let [one, other] = [before, after].map(|object| field(object.status(), name));
    let is_same = |name: &str| is_same_but(field(one, name), field(other, name), &[OBSERVED_AT]);
    match (one.as_object(), other.as_object()) {
        (Some(left), Some(right)) => {
            let mut names = left.keys().chain(right.keys()).filter(|name| *name != OBSERVED_AT);
            names.all(|name| is_same(name))
        }
        _ => one == other,
    }
}

/// Whether two objects have the same members, apart from these.
fn is_same_but(one: &Value, other: &Value, apart: &[&str]) -> bool {
    let (Some(left), Some(right)) = (one.as_object(), other.as_object()) else {
        return one == other;
    };
    let mut names = left.keys().chain(right.keys()).filter(|name| !apart.contains(&name.as_str()));
    names.all(|name| left.get(name) == right.get(name))
}

fn reads_properties(placement: &Object) -> bool {
    Placement::read(placement)
        .is_ok_and(|placement| SchedulingPolicy::read(&placement).reads_properties())
}

#[cfg(test)]
mod tests;
