//! Open Cluster Management: placements cut into decision groups, works rolled through them.
//!
//! A Placement and a `ManifestWorkReplicaSet` are each a rollout: the first decides which
//! clusters and in which groups, the second hands its template through those groups.

mod decide;
mod read;
mod report;
mod status;
mod validate;
mod watch;
mod write;

use convoy_api::ocm::names::{MANIFEST_WORK_REPLICA_SET, PLACEMENT};
use convoy_api::{GroupKind, Object, ObjectKey};
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Dialect, Watch};
use crate::diagnostic::Diagnostic;
use crate::snapshot::Snapshot;
use crate::step::Step;
use crate::world::World;

/// The `ocm` dialect.
#[derive(Clone, Copy, Debug)]
pub struct Ocm;

impl Dialect for Ocm {
    fn name(&self) -> &'static str {
        "ocm"
    }

    fn watches(&self) -> &'static [Watch] {
        watch::WATCHES
    }

    fn validates(&self, kind: &GroupKind) -> bool {
        validate::KINDS.contains(kind)
    }

    fn validate(&self, _world: &World, object: &Object) -> Vec<Diagnostic> {
        validate::validate(object)
    }

    fn rollouts<'w>(&self, world: &'w World) -> Vec<&'w Object> {
        world.of(&PLACEMENT).chain(world.of(&MANIFEST_WORK_REPLICA_SET)).collect()
    }

    fn affected(&self, world: &World, changed: &ObjectKey) -> Vec<ObjectKey> {
        watch::affected(world, changed)
    }

    fn snapshot<'w>(&self, world: &'w World, rollout: &'w Object) -> Snapshot<'w> {
        watch::snapshot(world, rollout)
    }

    fn hangs_on(&self, world: &World, rollout: &Object, refused: &Object) -> bool {
        watch::hangs_on(world, rollout, refused)
    }

    fn step(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
        if *snapshot.rollout().kind() == PLACEMENT {
            decide::placement::step(snapshot, now)
        } else {
            report::replica_set::step(snapshot, now)
        }
    }
}

/// What a decision group is called where people read it.
pub(crate) fn group_title(index: usize, name: &str) -> String {
    if name.is_empty() { format!("group {index}") } else { format!("{name} (group {index})") }
}

/// The entries of a list; empty where it is absent or something else.
pub(crate) fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A short digest of several texts, in lower-case hexadecimal.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]); // so that "ab", "c" and "a", "bc" differ
    }
    let bytes = hasher.finalize();
    let (head, _) = bytes.split_first_chunk::<8>().expect("a SHA-256 has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*head))
}

/// JSON text that does not depend on the order in which keys were written.
pub(crate) fn sorted_json(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            let field = |(key, value): (&String, &Value)| format!("{key:?}:{}", sorted_json(value));
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(sorted_json).collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}

/// Seconds from `now` to an instant ahead, as plans print them; null if there is none.
pub(crate) fn seconds_until(instant: Option<Timestamp>, now: Timestamp) -> Value {
    let Some(instant) = instant else { return Value::Null };
    let left = instant.duration_since(now);
    if left.subsec_nanos() == 0 {
        Value::from(left.as_secs())
    } else {
        Value::from(left.as_secs_f64())
    }
}

#[cfg(test)]
mod tests;
