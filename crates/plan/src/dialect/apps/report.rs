//! A decision as a [`Step`]: its writes in order, its summary, and where the replicas stand.

mod groups;
mod holds;
pub(crate) mod pods;
pub(crate) mod replica_set;

use convoy_api::apps::{TEMPLATE_HASH, annotation};
use serde_json::{Map, Value, json};

use super::decide::rollback::Rollback;
use super::decide::{DeploymentDecision, StatusScope};
use super::names::{APPS, PROGRESSING, REPLICA_FAILURE, TIMED_OUT};
use super::read::owned_set::OwnedSet;
use super::{status, write};
use crate::condition::dated::{Entry, summary};
use crate::hold::{Hold, HoldReason};
use crate::status::is_same;
use crate::step::{Step, Verdict};

/// The step of a Deployment.
pub(crate) fn step(decision: &DeploymentDecision<'_>) -> Step {
    let object = decision.deployment.object;
    let status = status::status(decision);
    let mut step = Step::new(APPS, object, Verdict::Moving);
    step.decision = self::decision(decision, &status);
    step.events.clone_from(&decision.events);
    step.events.extend(write::scale_events(decision));
    step.groups = groups::groups(decision);
    step.holds.clone_from(&decision.holds);
    if decision.scope == StatusScope::Progress {
        let settling = holds::settling(decision);
        let timers = settling.iter().filter_map(|hold| hold.until).chain(decision.deadline());
        step.wake_at = timers.chain(decision.failure_deadline()).min();
        step.holds.extend(settling);
        step.holds.extend(holds::not_ready(decision));
    }
    step.status = (!is_same(&status, object.status())).then_some(status);
    step.actions = write::actions(decision);
    let (verdict, hold) = verdict(&step, decision);
    step.verdict = verdict;
    step.holds.extend(hold.map(Hold::of_rollout));
    step
}

/// Where the rollout stands, and what the rollout as a whole waits for.
fn verdict(step: &Step, decision: &DeploymentDecision<'_>) -> (Verdict, Option<HoldReason>) {
    let in_flight = step.groups.iter().any(|group| group.moving + group.settling + group.gone > 0);
    let (deployment, counters) = (&decision.deployment, &decision.counters);
    let n = deployment.replicas;
    if let Some(reason) = decision.standstill.clone() {
        let paused = reason == HoldReason::Paused;
        return (if paused { Verdict::Paused } else { Verdict::Held }, Some(reason));
    }
    if !step.actions.is_empty() || decision.scope == StatusScope::Conditions {
        return (Verdict::Moving, None);
    }
    if decision.is_complete() && decision.new_size() == n {
        return (Verdict::Done, None);
    }
    if decision.conditions.reason(PROGRESSING) == TIMED_OUT {
        let secs = deployment.deadline_secs.unwrap_or_default();
        // Old pods are available as a rule, which says nothing about the release.
        let available = decision.new_set().map_or(0, |set| set.counts.available);
        let detail = format!(
            "no progress within {secs}s: {} of {n} replicas updated, {available} of these available",
            counters.updated
        );
        return (Verdict::Stopped, Some(HoldReason::Failed { detail }));
    }
    let failure = decision.conditions.find(REPLICA_FAILURE).filter(|entry| Entry::is_true(*entry));
    if let Some(failure) = failure {
        let detail = failure.message().to_owned();
        return (Verdict::Held, Some(HoldReason::Failed { detail }));
    }
    let draining = |reason: &&HoldReason| matches!(reason, HoldReason::Draining { .. });
    let draining = decision.new_waits_for.as_ref().filter(draining);
    if let Some(reason) = draining.filter(|_| decision.new.is_none()) {
        return (Verdict::Held, Some(reason.clone()));
    }
    if in_flight || step.status.is_some() {
        return (Verdict::Moving, None);
    }
    if let Some(reason) = decision.unobserved() {
        return (Verdict::Held, Some(reason));
    }
    let detail = format!("{} of {n} replicas updated and none under way", counters.updated);
    (Verdict::Stopped, Some(HoldReason::Stalled { detail }))
}

/// The summary; its keys are documented in `docs/reference/plan.md`.
fn decision(decision: &DeploymentDecision<'_>, status: &Value) -> Value {
    let names =
        |sets: &mut dyn Iterator<Item = &str>| -> Value { sets.map(|name| json!(name)).collect() };
    let resized = decision.sets.iter().filter(|set| set.wants != set.had);
    let scale: Map<String, Value> =
        resized.map(|set| (set.name().to_string(), json!(set.wants))).collect();
    let created = decision.created.as_ref();
    let create = created.map(
        |new| json!({"name": new.name, "replicas": new.replicas, "annotations": new.annotations}),
    );
    let label = |set: &OwnedSet<'_>| set.object.label(TEMPLATE_HASH).map(str::to_owned);
    let hash = created.map(|new| new.hash.clone());
    let revision = created.map(|new| new.revision.to_string());
    let noted = decision.new_set().and_then(|set| set.note(annotation::REVISION));
    let rollback = decision.rollback.as_ref().map(|rollback| match rollback {
        Rollback::To { revision, .. } => json!(revision),
        Rollback::Refused { reason } => json!(reason),
    });
    let mut summed = Map::new();
    let mut put = |key: &str, value: Value| summed.insert(key.to_owned(), value);
    put("scale", Value::Object(scale));
    put("create", create.unwrap_or_default());
    let trimmed = decision.sets.iter().filter(|set| set.trimmed);
    put("delete", names(&mut trimmed.map(|set| set.name().as_str())));
    let adopted = decision.sets.iter().filter(|set| set.adopted);
    put("adopt", names(&mut adopted.map(|set| set.name().as_str())));
    put("release", names(&mut decision.released.iter().map(|set| set.name().as_str())));
    put("revision", json!(revision.as_deref().or(noted)));
    put("hash", json!(hash.or_else(|| decision.new_set().and_then(label))));
    put("rollbackTo", rollback.unwrap_or_default());
    put("conditions", summary(decision.conditions.as_slice()));
    put("status", status.clone());
    Value::Object(summed)
}
