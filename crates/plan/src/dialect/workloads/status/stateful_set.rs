//! The status of a StatefulSet.

use convoy_api::Object;
use serde_json::{Map, Value, json};

use crate::dialect::workloads::names::REVISION_HASH;
use crate::dialect::workloads::read::Health;
use crate::dialect::workloads::read::stateful_set::StatefulSet;

pub(crate) fn status(set: &StatefulSet<'_>) -> Map<String, Value> {
    let wanted = set.wanted.end - set.wanted.start;
    let running = || set.pods.values().filter(|(_, health)| *health != Health::Finished);
    let count = |test: &dyn Fn(&Object, Health) -> bool| {
        i64::try_from(running().filter(|(pod, health)| test(pod, *health)).count())
            .unwrap_or(i64::MAX)
    };
    let at = |revision: &str| {
        count(&|pod, health| {
            health != Health::Terminating && pod.label(REVISION_HASH) == Some(revision)
        })
    };
    let (replicas, ready) = (count(&|_, _| true), count(&|_, health| health.is_ready()));
    let updated = at(&set.update);
    // Nobody rolls out under `OnDelete`, so that no rollout is ever done: the revision before the
    // first change stays the current one.
    let is_done =
        set.partition.is_some() && updated == wanted && ready == wanted && replicas == wanted;
    let current = if is_done || set.current == set.update { updated } else { at(&set.current) };
    let revision = if is_done { &set.update } else { &set.current };
    let mut status = Map::new();
    for (name, count) in [
        ("replicas", replicas),
        ("readyReplicas", ready),
        ("availableReplicas", count(&|_, health| health == Health::Available)),
        ("currentReplicas", current),
        ("updatedReplicas", updated),
        ("observedGeneration", set.owner.generation()),
        ("collisionCount", set.revisions.collisions.unwrap_or(0)),
    ] {
        status.insert(name.to_owned(), json!(count));
    }
    status.insert("currentRevision".to_owned(), json!(revision));
    status.insert("updateRevision".to_owned(), json!(set.update));
    status
}
