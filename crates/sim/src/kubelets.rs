//! The kubelets of all simulated nodes: which pods they have, what they report, when.

mod admission;
mod machine;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use convoy_api::object::member::{field, list, same, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use smol_str::SmolStr;

use crate::component::{Component, Key, Kind, WriteRequest, WriteResponse, WriteVerb};
use crate::kubelet::{self, Addresses, Lifetime, Progress};
use crate::node;
use crate::scenario::{NodeEventKind, Scenario};
use crate::shared_object::{SharedObject, version};
use crate::timers::Timers;
use machine::Machine;

/// All simulated nodes, and the pods bound to any node.
#[derive(Debug)]
pub struct Kubelets {
    scenario: Arc<Scenario>,
    /// The release that they report: the API server's.
    version: String,
    nodes: BTreeMap<SmolStr, Machine>,
    pods: BTreeMap<Key, Held>,
    /// Pods by the node they are bound to, simulated or not.
    bound: BTreeMap<SmolStr, BTreeSet<Key>>,
    timers: Timers<Timer>,
    /// Nodes that are yet to be made.
    unmade: BTreeSet<SmolStr>,
    begun: Option<Timestamp>,
}

/// What a timer is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Pod(Key),
    /// Its status is to be looked at.
    Node(SmolStr),
    Lease(SmolStr),
    /// An event of the scenario, by its place in the file.
    Event(SmolStr, usize),
    /// The end of what befell it.
    Over(SmolStr),
}

/// A pod that is bound to a node.
#[derive(Debug)]
struct Held {
    object: SharedObject,
    node: SmolStr,
    begun: Timestamp,
    ending: Option<Timestamp>,
    address: Option<String>,
    /// Its node was found to have room for it.
    has_room: bool,
    /// A write is on its way; what follows waits for its response.
    is_busy: bool,
    /// How far it had come when its status was last sent.
    sent: u64,
    /// The version that status was written at, once that is known.
    reported_at: Option<SmolStr>,
}

/// How long to wait after a write failed for no reason of ours.
const RETRY: SignedDuration = SignedDuration::from_secs(1);

impl Kubelets {
    pub fn new(scenario: Arc<Scenario>, version: String) -> Self {
        Self {
            scenario,
            version,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            bound: BTreeMap::new(),
            timers: Timers::default(),
            unmade: BTreeSet::new(),
            begun: None,
        }
    }

    /// Names of the nodes that this fleet has made or found made by an earlier run.
    pub fn node_names(&self) -> Vec<SmolStr> {
        self.nodes.keys().cloned().collect()
    }

    fn pod_changed(&mut self, key: &Key, object: Option<&SharedObject>, now: Timestamp) {
        let bound_to = object.map_or("", |pod| text(field(pod, "spec"), "nodeName"));
        let known = self.pods.get(key);
        if let (Some(held), Some(object)) = (known, object)
            && !object.is_newer(&held.object)
        {
            return;
        }
        let uid = |pod: &Value| text(field(pod, "metadata"), "uid").to_owned();
        let is_another = match (known, object) {
            (Some(held), Some(object)) => uid(object) != uid(&held.object),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if is_another {
            self.forget_pod(key);
        }
        let Some(object) = object.filter(|_| !bound_to.is_empty()) else { return };
        let held = self.pods.entry(key.clone()).or_insert_with(|| Held {
            object: object.clone(),
            node: bound_to.into(),
            begun: started(object).unwrap_or(now),
            ending: None,
            address: None,
            has_room: false,
            is_busy: false,
            sent: 0,
            reported_at: None,
        });
        held.object = object.clone();
        if held.ending.is_none() {
            held.ending = ending(object, now);
        }
        self.bound.entry(held.node.clone()).or_default().insert(key.clone());
        self.timers.set(Timer::Pod(key.clone()), now);
    }

    fn forget_pod(&mut self, key: &Key) {
        let Some(held) = self.pods.remove(key) else { return };
        self.timers.clear(&Timer::Pod(key.clone()));
        if let Some(keys) = self.bound.get_mut(&held.node) {
            keys.remove(key);
            if keys.is_empty() {
                self.bound.remove(&held.node);
            }
        }
        if let (Some(address), Some(machine)) = (held.address, self.nodes.get_mut(&held.node)) {
            machine.release(&address);
        }
    }

    /// What the kubelet writes about a pod, if anything.
    fn pod_due(&mut self, key: &Key, now: Timestamp) -> Option<WriteRequest> {
        if let Some(refusal) = self.refuse(key, now) {
            return Some(refusal);
        }
        let held = self.pods.get_mut(key)?;
        let machine = self.nodes.get_mut(&held.node)?;
        let node = machine.object.clone()?;
        if held.is_busy || machine.is_silent() {
            return None;
        }
        if kubelet::is_terminal(&held.object) && held.ending.is_none() {
            return None;
        }
        let address = held.address.get_or_insert_with(|| machine.take_address(&held.object));
        let addresses = Addresses { host: machine.host(), pod: address.clone() };
        let lifetime = Lifetime {
            begun: held.begun,
            ending: held.ending,
            reboots: machine.reboots.iter().copied().filter(|at| *at > held.begun).collect(),
        };
        let progress = kubelet::progress(&self.scenario, &held.object, &node, &lifetime, now);
        if let Some(next) = progress.next {
            self.timers.set(Timer::Pod(key.clone()), next);
        }
        if let Some(lasts) = progress.reboots {
            let node = held.node.clone();
            return self.apply_node_event(&node, NodeEventKind::Reboot, Some(lasts), now);
        }
        let newer = held.status_change(&progress, &lifetime, &addresses, now);
        let request = match newer {
            Some(status) => {
                held.sent = progress.digest();
                WriteRequest::status(key.clone(), &held.object, status)
            }
            None if progress.is_over => WriteRequest::delete(key.clone(), &held.object, Some(0)),
            None => return None,
        };
        held.is_busy = true;
        Some(request)
    }

    fn pod_response(
        &mut self,
        key: &Key,
        write: &WriteVerb,
        response: &WriteResponse,
        now: Timestamp,
    ) {
        let Some(held) = self.pods.get_mut(key) else { return };
        held.is_busy = false;
        if let (WriteVerb::MergeStatus(_), WriteResponse::Done(Some(object))) = (write, response) {
            held.reported_at = Some(version(object).into());
        }
        let again = match response {
            // Finalizers may hold it; the next newer of it wake us.
            WriteResponse::Done(_) if matches!(write, WriteVerb::Delete(_)) => return,
            WriteResponse::Done(_) => now,
            // News of a change are on their way and wake us; this is for when they are lost.
            WriteResponse::Conflict
            | WriteResponse::Missing
            | WriteResponse::Exists
            | WriteResponse::Failed(_) => now.checked_add(RETRY).unwrap_or(now),
        };
        self.timers.set(Timer::Pod(key.clone()), again);
    }

    fn wake_pods(&mut self, node: &str, now: Timestamp) {
        for key in self.bound.get(node).into_iter().flatten() {
            self.timers.set(Timer::Pod(key.clone()), now);
        }
    }
}

impl Component for Kubelets {
    fn changed(&mut self, key: &Key, object: Option<&SharedObject>, now: Timestamp) {
        match key.kind {
            Kind::Pod => self.pod_changed(key, object, now),
            Kind::Node => self.node_changed(&key.name, object, now),
            Kind::Lease | Kind::Event => {}
        }
    }

    fn knows(&self, key: &Key) -> bool {
        match key.kind {
            Kind::Pod => self.pods.contains_key(key),
            Kind::Node => self.nodes.get(&key.name).is_some_and(|node| node.object.is_some()),
            Kind::Lease | Kind::Event => false,
        }
    }

    fn handle_response(
        &mut self,
        request: &WriteRequest,
        response: &WriteResponse,
        now: Timestamp,
    ) {
        let WriteRequest { key, write, .. } = request;
        match key.kind {
            Kind::Pod => self.pod_response(key, write, response, now),
            Kind::Node => self.node_response(&key.name, write, response, now),
            Kind::Lease => self.lease_response(&key.name, response, now),
            Kind::Event => {}
        }
    }

    fn due(&mut self, now: Timestamp) -> Vec<WriteRequest> {
        let mut requests = self.begin(now);
        while let Some(timer) = self.timers.pop(now) {
            requests.extend(match timer {
                Timer::Pod(key) => self.pod_due(&key, now),
                Timer::Node(name) => self.node_due(&name, now),
                Timer::Lease(name) => self.lease_due(&name, now),
                Timer::Event(name, index) => self.event_due(&name, index, now),
                Timer::Over(name) => {
                    self.event_over(&name, now);
                    None
                }
            });
        }
        requests
    }

    fn next(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    fn is_settled(&self) -> bool {
        self.begun.is_some() && self.unmade.is_empty()
    }
}

impl Held {
    /// The status to be written, if it reads otherwise.
    fn status_change(
        &self,
        progress: &Progress,
        lifetime: &Lifetime,
        addresses: &Addresses,
        now: Timestamp,
    ) -> Option<Value> {
        let is_as_reported = self.reported_at.as_deref() == Some(version(&self.object));
        if kubelet::is_terminal(&self.object) || is_as_reported && self.sent == progress.digest() {
            return None;
        }
        let status = progress.status(&self.object, lifetime, addresses, now);
        let is_reported = says(field(&self.object, "status"), &status);
        (!is_reported).then_some(status)
    }
}

/// Whether `status` already reads as a kubelet would write it. What the server adds or leaves
/// out of an entry (nulls) makes no difference.
fn says(status: &Value, report: &Value) -> bool {
    let Value::Object(fields) = report else { return false };
    fields.iter().all(|(name, wanted)| agrees(field(status, name), wanted))
}

fn agrees(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| agrees(found.get(name).unwrap_or(&Value::Null), wanted)),
        (Value::Null, Value::Object(wanted)) => wanted.is_empty(),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| agrees(found, wanted))
        }
        (Value::Null, Value::String(wanted)) => wanted.is_empty(),
        _ => same(found, wanted),
    }
}

fn started(pod: &Value) -> Option<Timestamp> {
    text(field(pod, "status"), "startTime").parse().ok()
}

/// When a pod was asked to end. Its deletion timestamp is when its grace is over; an instant
/// before which we have heard nothing of it is as good, and finer than a second.
fn ending(pod: &Value, now: Timestamp) -> Option<Timestamp> {
    let metadata = field(pod, "metadata");
    let deadline: Timestamp = text(metadata, "deletionTimestamp").parse().ok()?;
    let grace = field(metadata, "deletionGracePeriodSeconds").as_i64().unwrap_or(0);
    let asked = deadline.checked_sub(SignedDuration::from_secs(grace)).unwrap_or(deadline);
    let is_fresh = now.duration_since(asked) < SignedDuration::from_secs(2);
    Some(if is_fresh { now } else { asked })
}

/// The address of nodes that somebody else made without one: no pod may report an empty one.
const NO_ADDRESS: &str = "172.31.255.254";

/// The address that containers of a node say they have.
fn host_of(node: &Value) -> String {
    let addresses = list(field(node, "status"), "addresses");
    let internal = addresses.iter().find(|address| text(address, "type") == "InternalIP");
    internal.map_or(NO_ADDRESS, |address| text(address, "address")).to_owned()
}

#[cfg(test)]
mod tests;
