//! A ReplicaSet's reconcile as a [`Step`].

use std::collections::BTreeSet;

use convoy_api::object::member::field;
use convoy_api::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::condition;
use crate::dialect::apps::decide::progress::{self, REPLICA_FAILURE};
use crate::dialect::apps::decide::replica_set::{BURST, Reconcile};
use crate::dialect::apps::read::pod::{Condition, Pod};
use crate::dialect::apps::report::conditions;
use crate::dialect::apps::status::says_the_same;
use crate::hold::{Hold, HoldReason};
use crate::ownership as claim;
use crate::pods::{self as new_pod, Names};
use crate::snapshot::Snapshot;
use crate::step::{Action, Event, EventType, GroupReport, Propagation, Step, Verb, Verdict, Why};

pub(crate) fn step(reconcile: &Reconcile<'_>, snapshot: &Snapshot<'_>) -> Step {
    let object = reconcile.object;
    let status = status(reconcile, None);
    let mut step = Step::new("apps", object, Verdict::Moving);
    step.actions = actions(reconcile, snapshot, &mut step.events);
    step.decision = decision(reconcile, &status);
    step.groups = vec![group(reconcile)];
    step.holds = holds(reconcile);
    step.wake_at = step.holds.iter().filter_map(|hold| hold.until).min();
    if !says_the_same(&status, object.status()) {
        step.status = Some(status);
    }
    step.verdict = verdict(&mut step, reconcile);
    step
}

fn verdict(step: &mut Step, reconcile: &Reconcile<'_>) -> Verdict {
    let [group] = step.groups.as_slice() else { return Verdict::Moving };
    let in_flight = group.moving + group.settling + group.gone > 0;
    if reconcile.object.is_deleting() {
        let on = "the garbage collector: it is being deleted".to_owned();
        step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
        return Verdict::Held;
    }
    let done = step.actions.is_empty() && !in_flight && group.waiting == 0;
    match (done, step.actions.is_empty() && !in_flight) {
        (true, _) => Verdict::Done,
        (false, true) => {
            let detail = "unable to create pods, no labels".to_owned();
            step.holds.push(Hold::of_rollout(HoldReason::Stalled { detail }));
            Verdict::Stopped
        }
        (false, false) => Verdict::Moving,
    }
}

fn actions(
    reconcile: &Reconcile<'_>,
    snapshot: &Snapshot<'_>,
    events: &mut Vec<Event>,
) -> Vec<Action> {
    let set = reconcile.object;
    let mut tell = |reason: &str, message: String, pod: &ObjectKey| {
        let (regarding, reason) = (set.key().clone(), reason.to_owned());
        let (kind, reports) = (EventType::Normal, Some(pod.clone()));
        events.push(Event { regarding, kind, reason, message, reports });
    };
    let going: BTreeSet<&str> = reconcile.deleted.iter().map(|pod| pod.name().as_str()).collect();
    let staying = |pod: &&Object| !going.contains(pod.name().as_str());
    let adopted = reconcile.adopted.iter().copied().filter(staying);
    let mut actions: Vec<Action> =
        claim::writes(set, reconcile.released.iter().copied(), adopted).collect();
    let (have, want) = (reconcile.active.len(), reconcile.replicas);
    for (key, pod) in new_pods(reconcile, snapshot) {
        tell("SuccessfulCreate", format!("Created pod: {}", key.name), &key);
        let why = Why::new("TooFew", format!("{have} of {want} pods"));
        actions.push(Action::create(Verb::Create, key, pod, why));
    }
    for pod in &reconcile.deleted {
        tell("SuccessfulDelete", format!("Deleted pod: {}", pod.name()), pod.key());
        let why = Why::new("TooMany", format!("{have} of {want} pods"));
        actions.push(Action::delete(Verb::Delete, pod, Propagation::Background, why));
    }
    actions
}

/// The pods to make, each under a name that nobody has.
fn new_pods(reconcile: &Reconcile<'_>, snapshot: &Snapshot<'_>) -> Vec<(ObjectKey, Value)> {
    let set = reconcile.object;
    let keys = Names::new(snapshot).several(set.name(), "", reconcile.make);
    let prefix = new_pod::prefix(set.name());
    let pods = keys.into_iter().map(|key| {
        let mut pod = new_pod::pod(set, field(set.spec(), "template"), &key);
        pod["metadata"]["generateName"] = json!(prefix);
        (key, pod)
    });
    pods.collect()
}

/// The whole status as it should read, by the pods there were before this step's writes.
/// Managing has succeeded once a step is carried out; otherwise there is a failure.
pub(crate) fn status(
    reconcile: &Reconcile<'_>,
    failure: Option<&condition::Condition<'_>>,
) -> Value {
    let set = reconcile.object;
    let labels = set.spec().pointer("/template/metadata/labels").and_then(Value::as_object);
    let labelled = |pod: &Object| {
        let mut wanted = labels.into_iter().flatten();
        wanted.all(|(key, text)| pod.label(key) == text.as_str())
    };
    let active = &reconcile.active;
    let fully_labelled = active.iter().filter(|pod| labelled(pod.object)).count();
    let ready = active.iter().filter(|pod| pod.is_ready()).count();
    let available = active.iter().filter(|pod| reconcile.is_available(pod)).count();
    let mut status = set.status().as_object().cloned().unwrap_or_default();
    status.insert("replicas".to_owned(), json!(active.len()));
    status.insert("terminatingReplicas".to_owned(), json!(reconcile.terminating));
    let numbers = [
        ("fullyLabeledReplicas", json!(fully_labelled)),
        ("readyReplicas", json!(ready)),
        ("availableReplicas", json!(available)),
        ("observedGeneration", json!(set.generation())),
    ];
    for (field, number) in numbers {
        if number == json!(0) {
            status.shift_remove(field);
        } else {
            status.insert(field.to_owned(), number);
        }
    }
    let told = status.shift_remove("conditions");
    let mut conditions = match told {
        Some(Value::Array(conditions)) => conditions,
        _ => Vec::new(),
    };
    match failure {
        // One that is told already is left as it is.
        Some(failure) if progress::find(&conditions, REPLICA_FAILURE).is_none() => {
            condition::set(&mut conditions, failure, reconcile.now);
        }
        Some(_) => {}
        None => condition::remove(&mut conditions, REPLICA_FAILURE),
    }
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
    Value::Object(status)
}

fn decision(reconcile: &Reconcile<'_>, status: &Value) -> Value {
    let names = |pods: &[&Object]| -> Value { pods.iter().map(|pod| json!(pod.name())).collect() };
    let told = status.get("conditions").and_then(Value::as_array);
    json!({
        "createPods": reconcile.make,
        "deletePods": names(&reconcile.deleted),
        "adopt": names(&reconcile.adopted),
        "release": names(&reconcile.released),
        "conditions": conditions(told.map_or(&[], Vec::as_slice)),
        "status": status,
    })
}

fn group(reconcile: &Reconcile<'_>) -> GroupReport {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut group = GroupReport::new(reconcile.object.name().as_str());
    let going: BTreeSet<&str> = reconcile.deleted.iter().map(|pod| pod.name().as_str()).collect();
    let staying = |pod: &&Pod<'_>| !going.contains(pod.object.name().as_str());
    let staying: Vec<&Pod<'_>> = reconcile.active.iter().filter(staying).collect();
    let available = staying.iter().filter(|pod| reconcile.is_available(pod)).count();
    let ready = staying.iter().filter(|pod| pod.is_ready()).count();
    group.done = number(available);
    group.settling = number(ready - available);
    group.moving = number(staying.len() - ready + reconcile.make);
    group.waiting = number(reconcile.left);
    group.gone = number(reconcile.deleted.len() + reconcile.terminating);
    group.total = group.done + group.settling + group.moving + group.waiting + group.gone;
    group
}

/// Pods that do not count yet, with the instant they do, and those beyond one step's burst.
fn holds(reconcile: &Reconcile<'_>) -> Vec<Hold> {
    let mut holds = Vec::new();
    let name = reconcile.object.name();
    for pod in &reconcile.active {
        let Condition::True { since } = pod.ready else { continue };
        if reconcile.is_available(pod) {
            continue;
        }
        let until = since.and_then(|since| reconcile.available_at(since));
        let reason = HoldReason::Settling { for_secs: reconcile.min_ready_secs };
        let hold = Hold::of_member(pod.object.name().clone(), reason).in_group(name.clone());
        holds.push(hold.until(until.filter(|until| *until > reconcile.now)));
    }
    if reconcile.left > 0 && reconcile.make > 0 {
        let size = u32::try_from(BURST).unwrap_or(u32::MAX);
        let reason = HoldReason::BatchFull { batch: 1, size };
        holds.push(Hold::of_rollout(reason).in_group(name.clone()));
    }
    holds
}
