//! The StatefulSet: numbered pods with names and volumes of their own, made, replaced and
//! removed in their order.

mod body;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use convoy_api::object::member::{field, text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::history::History;
use super::kept::{HASH_LABEL, Health, Kept, health, number, selector, template};
use super::outcome::{Outcome, invalid};
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;
use crate::step::{MemberState, Step, Why};

pub(super) fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    let owner = snapshot.rollout();
    let Some(selector) = selector(owner) else { return invalid(owner, "spec.selector") };
    let kept = Kept::new(snapshot, &selector);
    let history = History::new(snapshot);
    let set = Set::new(owner, &history, &kept, now);
    let mut outcome = Outcome::new(owner);
    if !owner.is_deleting() {
        outcome.actions.extend(history.actions.iter().cloned());
        outcome.actions.extend(kept.claims(owner));
        let waits = set.act(snapshot, &history, &mut outcome);
        set.explain(waits, &mut outcome);
        let mut live: BTreeSet<&str> =
            kept.pods.iter().filter_map(|pod| pod.label(HASH_LABEL)).collect();
        live.insert(&set.current);
        outcome.actions.extend(history.trim(&live));
    }
    let status = set.status(&history);
    let decision = json!({"currentRevision": set.current, "updateRevision": set.update});
    outcome.step(status, decision)
}

/// A StatefulSet and its pods.
#[derive(Debug)]
struct Set<'o> {
    owner: &'o Object,
    /// The ordinals that are wanted.
    wanted: std::ops::Range<i64>,
    /// By ordinal.
    pods: BTreeMap<i64, (&'o Object, Health)>,
    /// One at a time, each when the one before is available.
    is_ordered: bool,
    /// Ordinals below it stay at the current revision; none if nothing is replaced.
    partition: Option<i64>,
    /// The revision that was rolled out before.
    current: String,
    /// The revision of the template.
    update: String,
    min_ready_secs: i64,
}

/// What stops everything behind it: an ordinal, and why.
type Wait = (i64, HoldReason, Option<Timestamp>);

impl<'o> Set<'o> {
    fn new(owner: &'o Object, history: &History<'o>, kept: &Kept<'o>, now: Timestamp) -> Self {
        let spec = owner.spec();
        let min_ready_secs = number(spec, "minReadySeconds").unwrap_or(0);
        let start = number(field(spec, "ordinals"), "start").unwrap_or(0).max(0);
        let replicas = number(spec, "replicas").unwrap_or(1).max(0);
        let strategy = field(spec, "updateStrategy");
        let partition = number(field(strategy, "rollingUpdate"), "partition").unwrap_or(0);
        let numbered = kept.pods.iter().filter_map(|pod| {
            let ordinal = ordinal(owner, pod)?;
            Some((ordinal, (*pod, health(pod, min_ready_secs, now))))
        });
        let known = owner.status_text("currentRevision");
        let known = Some(known).filter(|name| history.template_of(name).is_some());
        Self {
            owner,
            wanted: start..start.saturating_add(replicas),
            pods: numbered.collect(),
            is_ordered: text(spec, "podManagementPolicy") != "Parallel",
            partition: (text(strategy, "type") != "OnDelete")
                .then(|| start.saturating_add(partition)),
            current: known.unwrap_or(&history.name).to_owned(),
            update: history.name.clone(),
            min_ready_secs,
        }
    }

    /// What is done now. Where order is kept, the first pod that is not as it should be stops
    /// everything else.
    fn act(
        &self,
        snapshot: &Snapshot<'_>,
        history: &History<'_>,
        outcome: &mut Outcome<'_>,
    ) -> Option<Wait> {
        for ordinal in self.wanted.clone() {
            let wait = match self.pods.get(&ordinal) {
                None => {
                    self.make(ordinal, snapshot, history, outcome);
                    Some(HoldReason::Depends { on: self.name(ordinal) })
                }
                Some((pod, Health::Over)) => {
                    outcome.delete(pod, Why::new("PodOver", "a pod that is over is made anew"));
                    Some(HoldReason::Depends { on: self.name(ordinal) })
                }
                Some((_, Health::Leaving)) => {
                    Some(HoldReason::Depends { on: format!("{} to be gone", self.name(ordinal)) })
                }
                // Waiting for it would wait for ever if what it is made from is at fault.
                Some((pod, Health::NotReady)) if self.is_outdated(ordinal, pod) => {
                    outcome.delete(
                        pod,
                        Why::new("Outdated", "it is not ready, and of an old revision"),
                    );
                    Some(HoldReason::Depends { on: self.name(ordinal) })
                }
                Some((_, Health::NotReady)) => {
                    let detail = format!("{} is not ready", self.name(ordinal));
                    Some(HoldReason::NotAvailable { detail })
                }
                Some((_, Health::Settling(until))) if self.is_ordered => {
                    let reason = HoldReason::Settling { for_secs: self.min_ready_secs };
                    return Some((ordinal, reason, *until));
                }
                Some((_, Health::Settling(_) | Health::Available)) => None,
            };
            if let Some(reason) = wait.filter(|_| self.is_ordered) {
                return Some((ordinal, reason, None));
            }
        }
        self.shrink(outcome).or_else(|| self.replace(outcome))
    }

    fn is_outdated(&self, ordinal: i64, pod: &Object) -> bool {
        self.partition.is_some_and(|partition| ordinal >= partition)
            && pod.label(HASH_LABEL) != Some(self.update.as_str())
    }

    /// Removes pods beyond the wanted, the last first.
    fn shrink(&self, outcome: &mut Outcome<'_>) -> Option<Wait> {
        let beyond = self.pods.iter().rev().filter(|(ordinal, _)| !self.wanted.contains(ordinal));
        for (ordinal, (pod, health)) in beyond {
            if *health == Health::Leaving {
                let reason = HoldReason::Depends { on: format!("{} to be gone", pod.name()) };
                if self.is_ordered {
                    return Some((*ordinal, reason, None));
                }
                continue;
            }
            let (first, end) = (self.wanted.start, self.wanted.end);
            outcome
                .delete(pod, Why::new("TooMany", format!("ordinals {first} to {end} are wanted")));
            if self.is_ordered {
                return Some((*ordinal, HoldReason::Depends { on: self.name(*ordinal) }, None));
            }
        }
        None
    }

    /// Replaces outdated pods, the last first, each when those behind it are available.
    fn replace(&self, outcome: &mut Outcome<'_>) -> Option<Wait> {
        let partition = self.partition?.max(self.wanted.start);
        for ordinal in (partition..self.wanted.end).rev() {
            let Some((pod, health)) = self.pods.get(&ordinal) else {
                let on = format!("{} to be there", self.name(ordinal));
                return Some((ordinal, HoldReason::Depends { on }, None));
            };
            if *health != Health::Leaving && self.is_outdated(ordinal, pod) {
                outcome.delete(pod, Why::new("Outdated", format!("{} is rolled out", self.update)));
                return Some((ordinal, HoldReason::Depends { on: self.name(ordinal) }, None));
            }
            if *health != Health::Available {
                let until = match health {
                    Health::Settling(until) => *until,
                    _ => None,
                };
                let detail = format!("{} is not available", self.name(ordinal));
                return Some((ordinal, HoldReason::NotAvailable { detail }, until));
            }
        }
        None
    }

    /// The pod of an ordinal, with its volumes.
    fn make(
        &self,
        ordinal: i64,
        snapshot: &Snapshot<'_>,
        history: &History<'_>,
        outcome: &mut Outcome<'_>,
    ) {
        let stays =
            self.partition.map_or(self.current != self.update, |partition| ordinal < partition);
        let earlier = history.template_of(&self.current).filter(|_| stays);
        let (revision, template) = match &earlier {
            Some(template) => (&self.current, template),
            None => (&self.update, template(self.owner)),
        };
        for (key, claim) in body::claims(self.owner, ordinal) {
            if snapshot.get(&key).is_none() {
                let why =
                    Why::new("VolumeMissing", format!("{} has no such claim", self.name(ordinal)));
                outcome.create(key, claim, why);
            }
        }
        let (key, pod) = body::pod(self.owner, ordinal, template, revision);
        let why = Why::new(
            "TooFew",
            format!("{} of {} pods", self.pods.len(), self.wanted.end - self.wanted.start),
        );
        outcome.create(key, pod, why);
    }

    fn explain(&self, waits: Option<Wait>, outcome: &mut Outcome<'_>) {
        let ordinals: BTreeSet<i64> =
            self.wanted.clone().chain(self.pods.keys().copied()).collect();
        for ordinal in ordinals {
            let name = self.name(ordinal);
            let behind = |reason: &Wait| (MemberState::Waiting, Some(reason.1.clone()), reason.2);
            let own = |reason: &Wait| reason.0 == ordinal;
            let (state, hold, until) = match self.pods.get(&ordinal) {
                _ if !self.wanted.contains(&ordinal) => (MemberState::Gone, None, None),
                Some((_, Health::Leaving | Health::Over)) => (MemberState::Moving, None, None),
                Some((_, Health::NotReady)) => {
                    let detail = "its pod is not ready".to_owned();
                    (MemberState::Moving, Some(HoldReason::NotAvailable { detail }), None)
                }
                Some((_, Health::Settling(until))) => {
                    let reason = HoldReason::Settling { for_secs: self.min_ready_secs };
                    (MemberState::Settling, Some(reason), *until)
                }
                Some((pod, Health::Available)) if self.is_outdated(ordinal, pod) => match &waits {
                    Some(wait) if !own(wait) => behind(wait),
                    _ => (MemberState::Moving, None, None),
                },
                Some((_, Health::Available)) => (MemberState::Done, None, None),
                None => match &waits {
                    Some(wait) if !own(wait) => behind(wait),
                    _ => (MemberState::Moving, None, None),
                },
            };
            outcome.member(name, state, hold, until);
        }
    }

    fn status(&self, history: &History<'_>) -> Map<String, Value> {
        let wanted = self.wanted.end - self.wanted.start;
        let alive = || self.pods.values().filter(|(_, health)| *health != Health::Over);
        let of = |test: &dyn Fn(&Object, Health) -> bool| {
            i64::try_from(alive().filter(|(pod, health)| test(pod, *health)).count())
                .unwrap_or(i64::MAX)
        };
        let at = |revision: &str| {
            of(&|pod, health| health != Health::Leaving && pod.label(HASH_LABEL) == Some(revision))
        };
        let (replicas, ready) = (of(&|_, _| true), of(&|_, health| health.is_ready()));
        let updated = at(&self.update);
        let is_over = updated == wanted && ready == wanted && replicas == wanted;
        let current =
            if is_over || self.current == self.update { updated } else { at(&self.current) };
        let revision = if is_over { &self.update } else { &self.current };
        let mut status = Map::new();
        for (name, count) in [
            ("replicas", replicas),
            ("readyReplicas", ready),
            ("availableReplicas", of(&|_, health| health == Health::Available)),
            ("currentReplicas", current),
            ("updatedReplicas", updated),
            ("observedGeneration", self.owner.generation()),
            ("collisionCount", history.collisions.unwrap_or(0)),
        ] {
            status.insert(name.to_owned(), json!(count));
        }
        status.insert("currentRevision".to_owned(), json!(revision));
        status.insert("updateRevision".to_owned(), json!(self.update));
        status
    }

    fn name(&self, ordinal: i64) -> String {
        format!("{}-{ordinal}", self.owner.name())
    }
}

/// The number at the end of a pod's name, if it is one of this set's.
fn ordinal(owner: &Object, pod: &Object) -> Option<i64> {
    let (name, number) = pod.name().rsplit_once('-')?;
    number.parse().ok().filter(|_| name == owner.name())
}
