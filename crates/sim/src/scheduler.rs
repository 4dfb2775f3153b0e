//! Pod scheduling: which node a waiting pod is bound to, and why none is.
//!
//! Looked at: unschedulable nodes, taints and tolerations, node selectors and node affinity,
//! resources, ports, and what pods require of each other: affinity, anti-affinity, topology
//! spread; pods that fit nowhere preempt less important ones. Not looked at: what they prefer of
//! each other, volumes.

mod neighbours;
mod preempt;
mod room;
mod shortlist;
mod wants;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use convoy_api::object::member::{field, list, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::component::{Component, Key, Kind, WriteRequest, WriteResponse, WriteVerb};
use crate::kubelet::{generation, is_terminal, stamp};
use crate::shared_object::SharedObject;
use crate::timers::Timers;
use neighbours::Neighbour;
pub(crate) use neighbours::Rules;
use preempt::{Condemned, nominated, priority};
pub use room::Amounts;
use room::Room;
pub(crate) use room::Shortage;
use shortlist::Shortlist;
use wants::Wants;

/// Binds pods that name no node.
#[derive(Debug, Default)]
pub struct Scheduler {
    rooms: BTreeMap<SmolStr, Room>,
    /// Pods on nodes, with what they take; also those whose binding is under way.
    placed: BTreeMap<Key, Placed>,
    waiting: BTreeMap<Key, SharedObject>,
    /// Waiting pods to be looked at: the most important first, then the oldest.
    queue: BTreeSet<Rank>,
    /// Waiting pods that fit nowhere as things are.
    misfits: BTreeSet<Key>,
    /// Pods to be queued again after a failure.
    timers: Timers<Key>,
    /// Pods on nodes that keep others away.
    guarded: BTreeSet<Key>,
    /// Whether a misfit may fit once another pod has found a node.
    has_followers: bool,
    /// Something changed that may make room for misfits.
    is_stirred: bool,
    looked_again: Option<Timestamp>,
    /// The last pod that fitted nowhere, until anything changes: its replicas do not fit either.
    refused: Option<Refused>,
    /// Where the last pod fitted, or would have: its replicas fit there too.
    shortlist: Option<Shortlist>,
    /// Pods on nodes, by priority: how many.
    priorities: BTreeMap<i64, usize>,
    /// Pods that make room for others.
    condemned: BTreeMap<Key, Condemned>,
    /// Waiting pods for which others make room, and where.
    nominated: BTreeMap<Key, SmolStr>,
    /// When misfits were last told why.
    told: BTreeMap<Key, Timestamp>,
}

/// A pod, and why it fits nowhere.
#[derive(Debug)]
struct Refused {
    pod: SharedObject,
    message: String,
}

/// Whether all that scheduling reads of two pods is the same.
fn is_replica(one: &Value, other: &Value) -> bool {
    let labels = |pod| field(field(pod, "metadata"), "labels");
    let namespace = |pod| field(field(pod, "metadata"), "namespace");
    field(one, "spec") == field(other, "spec")
        && labels(one) == labels(other)
        && namespace(one) == namespace(other)
}

/// Who is first: priority, then age, then the name. None changes in the life of a pod that waits.
type Rank = (Reverse<i64>, String, [SmolStr; 2]);

fn rank(key: &Key, pod: &Value) -> Rank {
    let priority = priority(pod);
    let created = text(field(pod, "metadata"), "creationTimestamp").to_owned();
    (Reverse(priority), created, [key.namespace.clone(), key.name.clone()])
}

#[derive(Debug)]
struct Placed {
    node: SmolStr,
    pod: SharedObject,
    takes: Amounts,
    /// The binding is not yet seen on the pod.
    is_assumed: bool,
}

/// Pods looked at in one go, so that answers and newer get their turn.
const BATCH: usize = 500;

/// Misfits are looked at again at most this often.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// A misfit is told anew what it lacks at most this often, as in Kubernetes, where the back-off of
/// pods ends there: each node that joins changes the message of all of them.
const TELL_AGAIN: SignedDuration = SignedDuration::from_secs(10);

const RETRY: SignedDuration = SignedDuration::from_secs(1);

/// What becomes of one pod.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Bind(SmolStr),
    /// With the message for its condition.
    Unschedulable(String),
}

impl Scheduler {
    fn pod_changed(&mut self, key: &Key, pod: Option<&SharedObject>) {
        let Some(pod) = pod else {
            self.leave(key);
            self.unplace(key);
            return;
        };
        let placed = self.placed.get(key).map(|placed| &placed.pod);
        if self.waiting.get(key).or(placed).is_some_and(|known| !pod.is_newer(known)) {
            return;
        }
        let spec = field(pod, "spec");
        let node = text(spec, "nodeName");
        if !node.is_empty() {
            self.leave(key);
            if is_terminal(pod) {
                self.unplace(key);
            } else {
                self.place(key, node, pod, false);
            }
            return;
        }
        let is_deleting = !text(field(pod, "metadata"), "deletionTimestamp").is_empty();
        let is_ours = matches!(text(spec, "schedulerName"), "" | "default-scheduler");
        let is_gated = !list(spec, "schedulingGates").is_empty();
        if is_deleting || !is_ours || is_gated || is_terminal(pod) {
            self.leave(key);
            return;
        }
        if self.placed.get(key).is_some_and(|placed| placed.is_assumed) {
            return; // newer from before the binding
        }
        // Its own new condition is no reason to look at a misfit again.
        let is_known = self.waiting.insert(key.clone(), pod.clone()).is_some();
        if !nominated(pod).is_empty() && !self.nominated.contains_key(key) {
            self.nominated.insert(key.clone(), nominated(pod).into());
        }
        if !is_known {
            self.enqueue(key);
        }
    }

    fn enqueue(&mut self, key: &Key) {
        let Some(pod) = self.waiting.get(key) else { return };
        self.misfits.remove(key);
        self.queue.insert(rank(key, pod));
    }

    /// It waits no longer.
    fn leave(&mut self, key: &Key) {
        if let Some(pod) = self.waiting.remove(key) {
            self.queue.remove(&rank(key, &pod));
            self.misfits.remove(key);
            self.told.remove(key);
            self.nominated.remove(key);
        }
    }

    fn place(&mut self, key: &Key, node: &str, pod: &SharedObject, is_assumed: bool) {
        if let Some(placed) = self.placed.get_mut(key)
            && placed.node == node
        {
            placed.is_assumed = is_assumed;
            placed.pod = pod.clone();
            return;
        }
        self.unplace(key);
        self.refused = None;
        let takes = Amounts::of_pod(field(pod, "spec"));
        self.rooms.entry(node.into()).or_default().used.add(&takes);
        *self.priorities.entry(priority(pod)).or_default() += 1;
        if !Rules::of(pod).keeps_nobody_away() {
            self.guarded.insert(key.clone());
        }
        self.is_stirred |= self.has_followers;
        let placed = Placed { node: node.into(), pod: pod.clone(), takes, is_assumed };
        self.placed.insert(key.clone(), placed);
        self.reconsider(&node.into());
    }

    /// A node has more room or less.
    fn reconsider(&mut self, node: &SmolStr) {
        let room = self.rooms.get(node).filter(|room| room.is_node);
        let keeps = |shortlist: &mut Shortlist| shortlist.update(node, room);
        if !self.shortlist.as_mut().is_none_or(keeps) {
            self.shortlist = None;
        }
        if self.rooms.get(node).is_some_and(|room| !room.is_node && room.used.pods <= 0) {
            self.rooms.remove(node);
        }
    }

    fn unplace(&mut self, key: &Key) {
        let Some(placed) = self.placed.remove(key) else { return };
        self.refused = None;
        self.condemned.remove(key);
        self.count_out(priority(&placed.pod));
        self.guarded.remove(key);
        if let Some(room) = self.rooms.get_mut(&placed.node) {
            room.used.subtract(&placed.takes);
        }
        self.reconsider(&placed.node);
        self.is_stirred = true;
    }

    /// A pod of this priority is on no node any more.
    fn count_out(&mut self, priority: i64) {
        if let Some(count) = self.priorities.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&priority);
            }
        }
    }

    /// Where a waiting pod goes to which other pods make no difference.
    fn shortlisted(&mut self, key: &Key, pod: &SharedObject) -> Option<SmolStr> {
        let matters = !Rules::of(pod).is_empty() || !self.guarded.is_empty();
        if matters || !self.reserved(key, pod).is_empty() {
            return None;
        }
        if !self.shortlist.as_ref().is_some_and(|known| known.covers(pod)) {
            let nodes = self.rooms.iter().filter(|(_, room)| room.is_node);
            self.shortlist = Shortlist::of(pod, nodes);
        }
        self.shortlist.as_ref()?.best().cloned()
    }

    /// What becomes of a waiting pod.
    fn decide(&self, key: &Key, pod: &Value) -> Decision {
        let wants = Wants::of(pod);
        let rules = Rules::of(pod);
        let nodes = || self.rooms.iter().filter(|(_, room)| room.is_node);
        let matters = !rules.is_empty() || !self.guarded.is_empty();
        let around = matters.then(|| {
            let eligible = |name: &str, room: &Room| wants.may_be_on(name, room);
            rules.look_around(nodes(), self.neighbours(), eligible)
        });
        let refusals = |name: &str, room: &Room| {
            let mut refusals = wants.refusals(name, room);
            if let Some(around) = around.as_ref().filter(|_| refusals.is_empty()) {
                refusals.extend(rules.refusal(around, name, room).map(str::to_owned));
            }
            refusals
        };
        // Most nodes of a busy fleet have no room, which is quickly seen.
        let reserved = self.reserved(key, pod);
        let roomy = nodes().filter(|(name, room)| match reserved.get(*name) {
            None => wants.has_room(room),
            Some(pods) => {
                let mut room = (*room).clone();
                room.reserve(pods.iter().copied());
                wants.has_room(&room)
            }
        });
        let fitting: Vec<_> =
            roomy.filter(|(name, room)| refusals(name, room).is_empty()).collect();
        if let Some(node) = wants.best(&fitting) {
            return Decision::Bind(node.clone());
        }
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for reason in nodes().flat_map(|(name, room)| refusals(name, room)) {
            *reasons.entry(reason).or_default() += 1;
        }
        let total = nodes().count();
        let mut counted: Vec<String> =
            reasons.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        counted.sort(); // by the text, as Kubernetes does
        Decision::Unschedulable(match total {
            0 => "no nodes available to schedule pods".to_owned(),
            _ => format!("0/{total} nodes are available: {}.", counted.join(", ")),
        })
    }

    /// Tells a misfit why, or later.
    fn tell(
        &mut self,
        key: &Key,
        pod: &Value,
        message: &str,
        now: Timestamp,
    ) -> Option<WriteRequest> {
        let request = unschedulable(key, pod, message, None, now)?;
        let told = self.told.get(key).and_then(|told| told.checked_add(TELL_AGAIN).ok());
        if let Some(again) = told.filter(|again| now < *again) {
            self.timers.set(key.clone(), again);
            return None;
        }
        self.told.insert(key.clone(), now);
        Some(request)
    }

    /// The pods on nodes.
    fn neighbours(&self) -> impl Iterator<Item = Neighbour<'_>> {
        self.neighbours_without(BTreeSet::new())
    }

    /// The same without some.
    fn neighbours_without<'s>(
        &'s self,
        gone: BTreeSet<&'s Key>,
    ) -> impl Iterator<Item = Neighbour<'s>> {
        self.placed.iter().filter(move |(key, _)| !gone.contains(key)).map(|(_, placed)| {
            let room = self.rooms.get(&placed.node).filter(|room| room.is_node);
            Neighbour { pod: &placed.pod, node: &placed.node, room }
        })
    }

    fn schedule(&mut self, key: &Key, now: Timestamp) -> Option<WriteRequest> {
        let pod = self.waiting.get(key)?.clone();
        let known = self.refused.as_ref().filter(|refused| is_replica(&refused.pod, &pod));
        let decision = match known {
            Some(known) => Decision::Unschedulable(known.message.clone()),
            None => match self.shortlisted(key, &pod) {
                Some(node) => Decision::Bind(node),
                None => self.decide(key, &pod),
            },
        };
        match decision {
            Decision::Bind(node) => {
                // It waits until it is seen there, so that a failure leads back here.
                self.place(key, &node, &pod, true);
                Some(bind(key, &pod, &node))
            }
            Decision::Unschedulable(message) => {
                self.misfits.insert(key.clone());
                self.has_followers |= !Rules::of(&pod).is_alone();
                self.refused = Some(Refused { pod: pod.clone(), message: message.clone() });
                match self.preempt(key, &pod) {
                    Some(node) => unschedulable(key, &pod, &message, Some(&node), now),
                    None => self.tell(key, &pod, &message, now),
                }
            }
        }
    }
}

impl Component for Scheduler {
    fn changed(&mut self, key: &Key, object: Option<&SharedObject>, _: Timestamp) {
        match (key.kind, object) {
            (Kind::Pod, pod) => self.pod_changed(key, pod),
            (Kind::Node, Some(node)) => {
                let room = self.rooms.entry(key.name.clone()).or_default();
                if room.update(node) {
                    self.is_stirred = true;
                    self.refused = None;
                    self.reconsider(&key.name);
                }
            }
            (Kind::Node, None) => {
                self.refused = None;
                // What its pods take is remembered, should it come back.
                if let Some(room) = self.rooms.get_mut(&key.name) {
                    room.is_node = false;
                }
                self.reconsider(&key.name);
            }
            (Kind::Lease | Kind::Event, _) => {}
        }
    }

    fn handle_response(
        &mut self,
        request: &WriteRequest,
        response: &WriteResponse,
        now: Timestamp,
    ) {
        let failed = !matches!(response, WriteResponse::Done(_));
        if !failed {
            self.dismissed(&request.key, true);
        }
        if failed && matches!(request.write, WriteVerb::Bind(_)) {
            // Still bound to nothing, or to something else: the watch says which.
            if self.placed.get(&request.key).is_some_and(|placed| placed.is_assumed) {
                self.unplace(&request.key);
            }
        }
        // One that is gone waits no longer, as the watch says; what else is missing may come.
        if failed {
            self.timers.set(request.key.clone(), now.checked_add(RETRY).unwrap_or(now));
        }
        if let WriteVerb::Bind(binding) = &request.write
            && let WriteResponse::Failed(message) = response
        {
            let node = text(field(binding, "target"), "name");
            tracing::warn!(pod = %request.key.name, node, message, "could not bind a pod");
        }
    }

    fn due(&mut self, now: Timestamp) -> Vec<WriteRequest> {
        while let Some(key) = self.timers.pop(now) {
            self.enqueue(&key);
            self.dismissed(&key, false);
        }
        if self.is_stirred && self.may_look_again(now) {
            self.is_stirred = false;
            self.looked_again = Some(now);
            for key in std::mem::take(&mut self.misfits) {
                self.enqueue(&key);
            }
        }
        let mut requests = Vec::new();
        for _ in 0..BATCH {
            let Some((_, _, [namespace, name])) = self.queue.pop_first() else { break };
            requests.extend(self.schedule(&Key::pod(&namespace, &name), now));
        }
        requests.extend(self.dismiss(now));
        requests
    }

    fn next(&self) -> Option<Timestamp> {
        if !self.queue.is_empty() || self.has_to_dismiss() {
            return Some(Timestamp::MIN);
        }
        let stirred = (self.is_stirred && !self.misfits.is_empty()).then(|| {
            let looked = self.looked_again.and_then(|looked| looked.checked_add(LOOK_AGAIN).ok());
            looked.unwrap_or(Timestamp::MIN)
        });
        self.timers.next().into_iter().chain(stirred).min()
    }
}

impl Scheduler {
    fn may_look_again(&self, now: Timestamp) -> bool {
        self.looked_again.is_none_or(|looked| now.duration_since(looked) >= LOOK_AGAIN)
    }
}

fn bind(key: &Key, pod: &Value, node: &str) -> WriteRequest {
    let uid = text(field(pod, "metadata"), "uid");
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": key.namespace, "name": key.name, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    WriteRequest::new(key.clone(), WriteVerb::Bind(binding))
}

/// Tells a pod why it waits, unless it says so already.
fn unschedulable(
    key: &Key,
    pod: &Value,
    message: &str,
    node: Option<&SmolStr>,
    now: Timestamp,
) -> Option<WriteRequest> {
    let old = list(field(pod, "status"), "conditions");
    let is_scheduling = |condition: &&Value| text(condition, "type") == "PodScheduled";
    let before = old.iter().find(is_scheduling);
    if before.is_some_and(|before| {
        text(before, "reason") == "Unschedulable" && text(before, "message") == message
    }) && node.is_none_or(|node| node == nominated(pod))
    {
        return None;
    }
    let turned = before.filter(|before| text(before, "status") == "False");
    let turned = turned.map(|before| text(before, "lastTransitionTime").to_owned());
    let mut condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": message, "lastProbeTime": null,
        "lastTransitionTime": turned.unwrap_or_else(|| stamp(now))});
    if let Some(generation) = generation(pod) {
        condition["observedGeneration"] = json!(generation);
    }
    let others = old.iter().filter(|condition| !is_scheduling(condition)).cloned();
    let conditions: Vec<Value> = others.chain([condition]).collect();
    let mut status = json!({"conditions": conditions});
    if let Some(node) = node {
        status["nominatedNodeName"] = json!(node);
    }
    Some(WriteRequest::status(key.clone(), pod, status))
}
