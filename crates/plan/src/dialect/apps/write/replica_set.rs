//! Actions of a ReplicaSet: ownership first, then pods that are created or deleted.

use std::collections::BTreeSet;

use convoy_api::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::dialect::apps::decide::replica_set::ReplicaSetDecision;
use crate::dialect::apps::read::template;
use crate::pods::writes::Writes;
use crate::pods::{self, Names};
use crate::snapshot::Snapshot;
use crate::step::Why;

/// The actions, each pod with the event that reports it.
pub(crate) fn writes<'o>(decision: &ReplicaSetDecision<'o>, snapshot: &Snapshot<'_>) -> Writes<'o> {
    let set = &decision.set;
    let mut writes = Writes::new(set.object);
    let going: BTreeSet<&str> = decision.deleted.iter().map(|pod| pod.name().as_str()).collect();
    let staying = |pod: &&Object| !going.contains(pod.name().as_str());
    let adopted = set.adopted.iter().copied().filter(staying);
    writes.claim(set.released.iter().copied(), adopted);
    let counts = format!("{} of {} pods", set.active.len(), set.replicas);
    if let Some(permit) = decision.creation.permit() {
        for (key, pod) in new_pods(decision, snapshot) {
            writes.start(permit, key, pod, Why::new("TooFew", counts.clone()));
        }
    }
    if let Some(permit) = decision.deletion.permit() {
        for pod in &decision.deleted {
            writes.remove(permit, pod, Why::new("TooMany", counts.clone()));
        }
    }
    writes
}

/// The pods to create, each under a name that is free.
fn new_pods(decision: &ReplicaSetDecision<'_>, snapshot: &Snapshot<'_>) -> Vec<(ObjectKey, Value)> {
    let set = decision.set.object;
    let count = usize::try_from(decision.creation.count).unwrap_or(usize::MAX);
    let keys = Names::new(snapshot).several(set.name(), "", count);
    let prefix = pods::prefix(set.name());
    let pods = keys.into_iter().map(|key| {
        let mut pod = pods::pod(set, template(set), &key);
        pod["metadata"]["generateName"] = json!(prefix);
        (key, pod)
    });
    pods.collect()
}
