//! A decision about a ReplicaSet as a [`Step`].

use std::collections::BTreeSet;

use convoy_api::Object;
use serde_json::{Value, json};

use crate::condition::dated::{Conditions, summary};
use crate::count;
use crate::dialect::apps::decide::replica_set::ReplicaSetDecision;
use crate::dialect::apps::{status, write};
use crate::hold::{Hold, HoldReason};
use crate::pods::active::{ActivePod, Readiness};
use crate::snapshot::Snapshot;
use crate::status::is_same;
use crate::step::{GroupReport, Step, Verdict};

/// The step of a ReplicaSet, under the name of the dialect that asks.
pub(crate) fn step(
    dialect: &'static str,
    decision: &ReplicaSetDecision<'_>,
    snapshot: &Snapshot<'_>,
) -> Step {
    let object = decision.set.object;
    let status = status::replica_set::status(&decision.set, None);
    let mut step = Step::new(dialect, object, Verdict::Moving);
    let writes = write::replica_set::writes(decision, snapshot);
    (step.actions, step.events) = (writes.actions, writes.events);
    step.decision = self::decision(decision, &status);
    step.groups = vec![group(decision)];
    step.holds = holds(decision);
    step.wake_at = step.holds.iter().filter_map(|hold| hold.until).min();
    step.status = (!is_same(&status, object.status())).then_some(status);
    step.verdict = verdict(&mut step, decision);
    step
}

fn verdict(step: &mut Step, decision: &ReplicaSetDecision<'_>) -> Verdict {
    let [group] = step.groups.as_slice() else { return Verdict::Moving };
    let in_flight = group.moving + group.settling + group.gone > 0;
    if decision.set.object.is_deleting() {
        let on = "the garbage collector: it is being deleted".to_owned();
        step.holds.push(Hold::of_rollout(HoldReason::Depends { on }));
        return Verdict::Held;
    }
    match (step.actions.is_empty() && !in_flight, group.waiting) {
        (true, 0) => Verdict::Done,
        (true, _) => Verdict::Stopped,
        (false, _) => Verdict::Moving,
    }
}

/// The summary; its keys are documented in `docs/reference/plan.md`.
fn decision(decision: &ReplicaSetDecision<'_>, status: &Value) -> Value {
    let names = |pods: &[&Object]| -> Value { pods.iter().map(|pod| json!(pod.name())).collect() };
    json!({
        "createPods": decision.creation.count,
        "deletePods": names(&decision.deleted),
        "adopt": names(&decision.set.adopted),
        "release": names(&decision.set.released),
        "conditions": summary(Conditions::in_status(status).as_slice()),
        "status": status,
    })
}

fn group(decision: &ReplicaSetDecision<'_>) -> GroupReport {
    let set = &decision.set;
    let mut group = GroupReport::new(set.object.name().as_str());
    let going: BTreeSet<&str> = decision.deleted.iter().map(|pod| pod.name().as_str()).collect();
    let staying = |pod: &&ActivePod<'_>| !going.contains(pod.object.name().as_str());
    let staying: Vec<&ActivePod<'_>> = set.active.iter().filter(staying).collect();
    let available = staying.iter().filter(|pod| set.is_available(pod)).count();
    let ready = staying.iter().filter(|pod| pod.is_ready()).count();
    group.done = count(available);
    group.settling = count(ready - available);
    group.moving = count(staying.len() - ready) + decision.creation.count;
    group.waiting = decision.left;
    group.gone = count(decision.deleted.len() + set.terminating);
    group.total = group.done + group.settling + group.moving + group.waiting + group.gone;
    group
}

/// Pods that do not count yet, with the instant they do, and those that the gate holds back.
fn holds(decision: &ReplicaSetDecision<'_>) -> Vec<Hold> {
    let set = &decision.set;
    let mut holds = Vec::new();
    let name = set.object.name();
    for pod in &set.active {
        let Readiness::True { since } = pod.ready else { continue };
        if set.is_available(pod) {
            continue;
        }
        let until = since.and_then(|since| set.available_at(since));
        let reason = HoldReason::Settling { for_secs: set.min_ready_secs };
        let hold = Hold::of_member(pod.object.name().clone(), reason).in_group(name.clone());
        holds.push(hold.until(until.filter(|until| *until > set.now)));
    }
    for reason in [&decision.creation.hold, &decision.deletion.hold].into_iter().flatten() {
        holds.push(match reason {
            HoldReason::Stalled { .. } => Hold::of_rollout(reason.clone()),
            _ => Hold::of_rollout(reason.clone()).in_group(name.clone()),
        });
    }
    holds
}
