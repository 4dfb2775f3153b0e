//! The DaemonSet: one pod on every node that it suits, replaced node by node.

mod nodes;
mod update;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use self::nodes::{Place, Suitability, node_of, pinned};
use self::update::Pace;
use super::NODE;
use super::history::History;
use super::kept::{HASH_LABEL, Health, Kept, health, note, number, selector};
use super::outcome::{Outcome, invalid};
use crate::hold::HoldReason;
use crate::pods::{Names, pod};
use crate::snapshot::Snapshot;
use crate::step::{EventType, MemberState, Step, Why};

/// The most pods made or deleted in one step.
const BURST: usize = 250;

pub(super) fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let owner = snapshot.rollout();
    let Some(selector) = selector(owner) else { return invalid(owner, "spec.selector") };
    let kept = Kept::new(snapshot, &selector);
    let history = History::new(snapshot);
    let pace = match Pace::read(owner) {
        Ok(pace) => pace,
        Err(field) => return invalid(owner, field),
    };
    let mut places = places(snapshot, &kept, &history.hash, now);
    let mut outcome = Outcome::new(owner);
    if !owner.is_deleting() {
        outcome.actions.extend(history.actions.iter().cloned());
        outcome.actions.extend(kept.claims(owner));
        pace.decide(&mut places);
        act(snapshot, &history, &places, &mut outcome);
        let live: BTreeSet<&str> =
            kept.pods.iter().filter_map(|pod| pod.label(HASH_LABEL)).collect();
        outcome.actions.extend(history.trim(&live));
    }
    explain(&pace, &places, &mut outcome);
    let status = status(owner, &history, &places);
    let decision = json!({
        "createPods": places.iter().filter(|place| place.creates()).count(),
        "deletePods": places.iter().flat_map(|place| &place.deleted).map(|pod| pod.name())
            .collect::<Vec<_>>(),
    });
    outcome.step(status, decision)
}

/// Every node, and every node that is gone and still has pods, by name.
fn places<'w>(
    snapshot: &Snapshot<'w>,
    kept: &Kept<'w>,
    hash: &str,
    now: Timestamp,
) -> Vec<Place<'w>> {
    let owner = snapshot.rollout();
    let min_ready_secs = number(owner.spec(), "minReadySeconds").unwrap_or(0);
    let suitability = Suitability::of(owner);
    let mut on_nodes: BTreeMap<&str, Vec<(&Object, Health)>> = BTreeMap::new();
    for pod in &kept.pods {
        let standing = health(pod, min_ready_secs, now);
        on_nodes.entry(node_of(pod).unwrap_or_default()).or_default().push((pod, standing));
    }
    let mut places: Vec<Place<'w>> = Vec::new();
    for node in snapshot.of(&NODE) {
        let pods = on_nodes.remove(node.name().as_str()).unwrap_or_default();
        places.push(Place::new(node.name(), suitability.judge(node), pods, hash));
    }
    let gone = on_nodes.into_iter().filter(|(node, _)| !node.is_empty());
    places.extend(gone.map(|(node, pods)| Place::new(node, nodes::Fit::Unfit, pods, hash)));
    places
}

fn act(
    snapshot: &Snapshot<'_>,
    history: &History<'_>,
    places: &[Place<'_>],
    outcome: &mut Outcome<'_>,
) {
    let owner = snapshot.rollout();
    let mut names = Names::new(snapshot);
    let template = super::kept::template(owner);
    for place in places.iter().filter(|place| place.creates()).take(BURST) {
        let key = names.next(owner.name(), place.node);
        let mut pod = pod(owner, template, &key);
        note(&mut pod, "labels", HASH_LABEL, &history.hash);
        let generation = owner.generation().to_string();
        note(&mut pod, "labels", "pod-template-generation", &generation);
        pinned(&mut pod["spec"], place.node);
        let why = Why::new("NodeWithout", format!("node {} has no such pod", place.node));
        outcome.create(key, pod, why);
    }
    let deleted = places.iter().flat_map(|place| place.deleted.iter().map(move |pod| (place, pod)));
    for (place, pod) in deleted.take(BURST) {
        let why = match pod.status_text("phase") {
            word @ ("Failed" | "Succeeded") => {
                let (kind, verb) = if word == "Failed" {
                    (EventType::Warning, "FailedDaemonPod")
                } else {
                    (EventType::Normal, "SucceededDaemonPod")
                };
                let message = format!(
                    "Found {} daemon pod {}/{} on node {}, will try to kill it",
                    word.to_lowercase(),
                    pod.namespace(),
                    pod.name(),
                    place.node
                );
                outcome.tell(kind, verb, message);
                Why::new("PodOver", format!("its phase is {word}"))
            }
            _ if !place.fit.may_stay() => Why::new("NodeUnfit", "the node does not suit it"),
            _ => Why::new("Outdated", "it is replaced by one of the template"),
        };
        outcome.delete(pod, why);
    }
}

/// Where every node stands, and what it waits for.
fn explain(pace: &Pace, places: &[Place<'_>], outcome: &mut Outcome<'_>) {
    outcome.group.ceiling = pace.ceiling(places);
    for place in places {
        let leaving = place.is_leaving();
        let (state, hold, until) = match place.current() {
            _ if !place.fit.should_run() && place.pods.is_empty() => continue,
            _ if !place.fit.should_run() && leaving => (MemberState::Gone, None, None),
            _ if !place.fit.should_run() => {
                // It may stay, though nothing would be started there now.
                let reason = place.fit.hold();
                (MemberState::Done, reason, None)
            }
            _ if leaving || place.creates() || place.alive().count() > 1 => {
                (MemberState::Moving, None, None)
            }
            None => (MemberState::Moving, None, None),
            Some((false, _)) => (MemberState::Waiting, Some(pace.no_room(places)), None),
            Some((true, Health::Available)) => (MemberState::Done, None, None),
            Some((true, Health::Settling(until))) => {
                let reason = HoldReason::Settling { for_secs: place.min_ready_secs(until) };
                (MemberState::Settling, Some(reason), until)
            }
            Some((true, _)) => {
                let detail = "its pod is not ready".to_owned();
                (MemberState::Moving, Some(HoldReason::NotAvailable { detail }), None)
            }
        };
        outcome.member(place.node, state, hold, until);
    }
}

fn status(owner: &Object, history: &History<'_>, places: &[Place<'_>]) -> Map<String, Value> {
    let wanted = || places.iter().filter(|place| place.fit.should_run());
    let of = |test: &dyn Fn(bool, Health) -> bool| {
        wanted()
            .filter_map(Place::current)
            .filter(|(updated, health)| test(*updated, *health))
            .count()
    };
    let (desired, available) = (wanted().count(), of(&|_, health| health == Health::Available));
    let misplaced = places.iter().filter(|place| !place.fit.should_run() && !place.pods.is_empty());
    let mut status = Map::new();
    let mut put = |name: &str, count: usize| status.insert(name.to_owned(), json!(count));
    put("currentNumberScheduled", of(&|_, _| true));
    put("numberMisscheduled", misplaced.count());
    put("desiredNumberScheduled", desired);
    put("numberReady", of(&|_, health| health.is_ready()));
    put("updatedNumberScheduled", of(&|updated, _| updated));
    put("numberAvailable", available);
    put("numberUnavailable", desired.saturating_sub(available));
    status.insert("observedGeneration".to_owned(), json!(owner.generation()));
    if let Some(collisions) = history.collisions {
        status.insert("collisionCount".to_owned(), json!(collisions));
    }
    status
}
