//! Actions of a ReplicaSet: ownership first, then pods that are created or deleted.

use std::collections::BTreeSet;

use convoy_api::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::dialect::apps::decide::replica_set::ReplicaSetDecision;
use crate::dialect::apps::read::template;
use crate::ownership;
use crate::pods::{self, Names};
use crate::snapshot::Snapshot;
use crate::step::{Action, Event, EventType, Propagation, Verb, Why};

/// The actions, each pod with the event that reports it.
pub(crate) fn actions(
    decision: &ReplicaSetDecision<'_>,
    snapshot: &Snapshot<'_>,
    events: &mut Vec<Event>,
) -> Vec<Action> {
    let set = &decision.set;
    let mut tell = |reason: &str, message: String, pod: &ObjectKey| {
        let (regarding, reason) = (set.object.key().clone(), reason.to_owned());
        let (kind, reports) = (EventType::Normal, Some(pod.clone()));
        events.push(Event { regarding, kind, reason, message, reports });
    };
    let going: BTreeSet<&str> = decision.deleted.iter().map(|pod| pod.name().as_str()).collect();
    let staying = |pod: &&Object| !going.contains(pod.name().as_str());
    let adopted = set.adopted.iter().copied().filter(staying);
    let mut actions: Vec<Action> =
        ownership::writes(set.object, set.released.iter().copied(), adopted).collect();
    let counts = format!("{} of {} pods", set.active.len(), set.replicas);
    if let Some(permit) = decision.creation.permit() {
        for (key, pod) in new_pods(decision, snapshot) {
            tell("SuccessfulCreate", format!("Created pod: {}", key.name), &key);
            let why = Why::new("TooFew", counts.clone());
            actions.push(Action::create(Verb::Start(permit), key, pod, why));
        }
    }
    if let Some(permit) = decision.deletion.permit() {
        for pod in &decision.deleted {
            tell("SuccessfulDelete", format!("Deleted pod: {}", pod.name()), pod.key());
            let why = Why::new("TooMany", counts.clone());
            let verb = Verb::Remove(permit);
            actions.push(Action::delete(verb, pod, Propagation::Background, why));
        }
    }
    actions
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
