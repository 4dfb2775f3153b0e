//! What differs between two states of a member cluster, of all that its agent reports.

use convoy_api::Object;
use serde_json::Value;

use super::member::HEARTBEAT;
use super::placement::{field, list};

/// Metadata that every write changes.
const METADATA: [&str; 3] = ["resourceVersion", "generation", "managedFields"];

/// What a cluster reports about itself.
const AGENTS: &str = "agentStatus";
const PROPERTIES: &str = "properties";
const USAGE: &str = "resourceUsage";
const SPACES: &str = "namespaces";

/// The instant at which a property or the usage was looked at, which decides nothing.
const OBSERVED_AT: &str = "observationTime";

/// Whether all that differs is a heartbeat or something that the agent measures.
pub(crate) fn is_all_that_differs(before: &Object, after: &Object) -> bool {
    before.spec() == after.spec()
        && is_same_but(before.metadata(), after.metadata(), &METADATA)
        && is_same_but(before.status(), after.status(), &[AGENTS, PROPERTIES, USAGE, SPACES])
        && has_same_agents(before, after)
}

/// Whether properties and usage say the same, be they seen at another time.
pub(crate) fn has_same_properties(before: &Object, after: &Object) -> bool {
    is_same_reading(before, after, PROPERTIES) && is_same_reading(before, after, USAGE)
}

pub(crate) fn has_same_namespaces(before: &Object, after: &Object) -> bool {
    is_same_reading(before, after, SPACES)
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
