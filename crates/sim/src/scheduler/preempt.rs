//! Preemption: a pod that fits nowhere takes the place of pods that are less important. Budgets
//! for disruptions are not looked at.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use convoy_api::object::member::{field, list, text};
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::room::Room;
use super::wants::Wants;
use super::{Placed, Rules, Scheduler};
use crate::component::{Key, WriteRequest};
use crate::kubelet::{generation, stamp};

/// What is left to do about a pod that makes room: it is told why, then deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condemned {
    ToMark,
    Marking,
    ToDelete,
    Deleting,
}

pub(super) fn priority(pod: &Value) -> i64 {
    field(field(pod, "spec"), "priority").as_i64().unwrap_or(0)
}

/// The node that waits for a pod to have room.
pub(super) fn nominated(pod: &Value) -> &str {
    text(field(pod, "status"), "nominatedNodeName")
}

/// A node, and the pods that would have to leave it.
struct Candidate<'s> {
    node: &'s SmolStr,
    victims: BTreeSet<&'s Key>,
}

impl Scheduler {
    /// Makes room for a pod that fits nowhere; the node on which there will be some.
    pub(super) fn preempt(&mut self, key: &Key, pod: &Value) -> Option<SmolStr> {
        let lowest = *self.priorities.first_key_value()?.0;
        let is_polite = text(field(pod, "spec"), "preemptionPolicy") == "Never";
        if is_polite || lowest >= priority(pod) || self.has_room_coming(key, pod) {
            return None;
        }
        let Candidate { node, victims } = self.candidate(key, pod)?;
        let (node, victims): (SmolStr, Vec<Key>) =
            (node.clone(), victims.into_iter().cloned().collect());
        for victim in victims {
            self.condemned.insert(victim, Condemned::ToMark);
        }
        self.nominated.insert(key.clone(), node.clone());
        self.refused = None;
        Some(node)
    }

    /// Whether pods are leaving the node that waits for this one.
    fn has_room_coming(&self, key: &Key, pod: &Value) -> bool {
        let Some(node) = self.nominated.get(key) else { return false };
        let mut there = self.placed.iter().filter(|(_, placed)| placed.node == *node);
        there.any(|(key, placed)| {
            priority(&placed.pod) < priority(pod) && self.is_leaving(key, placed)
        })
    }

    fn is_leaving(&self, key: &Key, placed: &Placed) -> bool {
        self.condemned.contains_key(key)
            || !text(field(&placed.pod, "metadata"), "deletionTimestamp").is_empty()
    }

    /// The node where the least important pods, and the fewest, have to go.
    fn candidate(&self, key: &Key, pod: &Value) -> Option<Candidate<'_>> {
        let mut lower: BTreeMap<&SmolStr, Vec<(&Key, &Placed)>> = BTreeMap::new();
        for (other, placed) in &self.placed {
            let is_lower = priority(&placed.pod) < priority(pod);
            if is_lower && !placed.is_assumed && !self.is_leaving(other, placed) {
                lower.entry(&placed.node).or_default().push((other, placed));
            }
        }
        let fit = Fit { scheduler: self, key, pod, wants: Wants::of(pod), rules: Rules::of(pod) };
        let candidates = lower.into_iter().filter_map(|(node, lower)| {
            let room = self.rooms.get(node).filter(|room| room.is_node)?;
            let victims = fit.victims(node, room, lower)?;
            Some(Candidate { node, victims })
        });
        candidates.min_by_key(|candidate| {
            let placed = candidate.victims.iter().filter_map(|key| self.placed.get(*key));
            let priorities: Vec<i64> = placed.map(|placed| priority(&placed.pod)).collect();
            let highest = priorities.iter().max().copied();
            (highest, priorities.iter().sum::<i64>(), priorities.len(), candidate.node.clone())
        })
    }

    /// What other pods, not less important than this one, wait for on nodes: it is as good as taken.
    pub(super) fn reserved(&self, key: &Key, pod: &Value) -> BTreeMap<&SmolStr, Vec<&Value>> {
        let mut reserved: BTreeMap<&SmolStr, Vec<&Value>> = BTreeMap::new();
        for (other, node) in self.nominated.iter().filter(|(other, _)| *other != key) {
            let waiting = self.waiting.get(other);
            if let Some(other) = waiting.filter(|other| priority(other) >= priority(pod)) {
                reserved.entry(node).or_default().push(other);
            }
        }
        reserved
    }

    /// The next writes about pods that make room.
    pub(super) fn dismiss(&mut self, now: Timestamp) -> Vec<WriteRequest> {
        let mut requests = Vec::new();
        for (key, stage) in &mut self.condemned {
            let Some(placed) = self.placed.get(key) else { continue };
            match stage {
                Condemned::ToMark => {
                    requests.push(marked(key, &placed.pod, now));
                    *stage = Condemned::Marking;
                }
                Condemned::ToDelete => {
                    requests.push(WriteRequest::delete(key.clone(), &placed.pod, None));
                    *stage = Condemned::Deleting;
                }
                Condemned::Marking | Condemned::Deleting => {}
            }
        }
        requests
    }

    /// Whether such a write is due.
    pub(super) fn has_to_dismiss(&self) -> bool {
        let is_due = |stage: &Condemned| matches!(stage, Condemned::ToMark | Condemned::ToDelete);
        self.condemned.values().any(is_due)
    }

    /// Goes on with a pod that makes room, or begins again.
    pub(super) fn dismissed(&mut self, key: &Key, is_done: bool) {
        if let Some(stage) = self.condemned.get_mut(key) {
            *stage = match (*stage, is_done) {
                (Condemned::Marking, true) | (Condemned::Deleting, false) => Condemned::ToDelete,
                (stage, true) => stage,
                (_, false) => Condemned::ToMark,
            };
        }
    }
}

/// A pod that looks for room.
struct Fit<'s, 'p> {
    scheduler: &'s Scheduler,
    key: &'p Key,
    pod: &'p Value,
    wants: Wants<'p>,
    rules: Rules<'p>,
}

impl<'s> Fit<'s, '_> {
    /// Who has to leave a node, as few as possible; none if that does not help.
    fn victims(
        &self,
        name: &str,
        room: &Room,
        mut lower: Vec<(&'s Key, &'s Placed)>,
    ) -> Option<BTreeSet<&'s Key>> {
        let mut victims: BTreeSet<&Key> = lower.iter().map(|(key, _)| *key).collect();
        if !self.is_met(name, room, &victims) {
            return None;
        }
        // The most important, and of these the oldest, are the first to be spared.
        lower.sort_by_cached_key(|(_, placed)| {
            let metadata = field(&placed.pod, "metadata");
            let name = text(metadata, "name").to_owned();
            (Reverse(priority(&placed.pod)), text(metadata, "creationTimestamp").to_owned(), name)
        });
        for (key, _) in lower {
            victims.remove(key);
            if !self.is_met(name, room, &victims) {
                victims.insert(key);
            }
        }
        Some(victims)
    }

    /// Whether the pod fits on a node without some pods.
    fn is_met(&self, name: &str, room: &Room, gone: &BTreeSet<&'s Key>) -> bool {
        let scheduler = self.scheduler;
        let mut room = room.clone();
        for placed in gone.iter().filter_map(|key| scheduler.placed.get(*key)) {
            room.used.subtract(&placed.takes);
        }
        let reserved = scheduler.reserved(self.key, self.pod);
        room.reserve(reserved.get(&SmolStr::new(name)).into_iter().flatten().copied());
        if !self.wants.refusals(name, &room).is_empty() {
            return false;
        }
        if self.rules.is_empty() && scheduler.guarded.is_empty() {
            return true;
        }
        let nodes = scheduler.rooms.iter().filter(|(_, room)| room.is_node);
        let stay = scheduler.neighbours_without(gone.clone());
        let eligible = |name: &str, room: &Room| self.wants.may_be_on(name, room);
        let around = self.rules.look_around(nodes, stay, eligible);
        self.rules.refusal(&around, name, &room).is_none()
    }
}

/// Tells a pod that it has to go, and why.
fn marked(key: &Key, pod: &Value, now: Timestamp) -> WriteRequest {
    let old = list(field(pod, "status"), "conditions");
    let others = old.iter().filter(|condition| text(condition, "type") != "DisruptionTarget");
    let mut condition = json!({"type": "DisruptionTarget", "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "lastProbeTime": null, "lastTransitionTime": stamp(now)});
    if let Some(generation) = generation(pod) {
        condition["observedGeneration"] = json!(generation);
    }
    let conditions: Vec<Value> = others.cloned().chain([condition]).collect();
    WriteRequest::status(key.clone(), pod, json!({"conditions": conditions}))
}
