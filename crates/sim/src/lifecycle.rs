//! Node lifecycle, where no kube-controller-manager does it: nodes that are not heard of are
//! marked and tainted, and their pods are deleted once they no longer tolerate it; a cordon is a
//! taint too.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::object::member::{field, list, text};
use convoy_api::well_known::taint::{NOT_READY, UNREACHABLE, UNSCHEDULABLE};
use convoy_plan::taint::{Taint, Toleration};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::component::{Component, Key, Kind, WriteRequest, WriteResponse, WriteVerb, fence};
use crate::kubelet::stamp;
use crate::shared_object::SharedObject;
use crate::timers::Timers;

#[derive(Debug, Default)]
pub struct Lifecycle {
    nodes: BTreeMap<SmolStr, Node>,
    pods: BTreeMap<Key, SharedObject>,
    bound: BTreeMap<SmolStr, BTreeSet<Key>>,
    timers: Timers<Key>,
    busy: BTreeSet<Key>,
}

#[derive(Debug)]
struct Node {
    /// Absent after it was deleted, as long as pods name it.
    object: Option<SharedObject>,
    /// When it was last heard of.
    heard: Timestamp,
    /// Silence of so long means that nobody is there.
    grace: SignedDuration,
}

impl Node {
    fn new(now: Timestamp) -> Self {
        Self { object: None, heard: now, grace: GRACE_MIN }
    }
}

/// As long as the leases of kubelets count; one that says so may count longer.
const GRACE_MIN: SignedDuration = SignedDuration::from_secs(40);

/// Pods of a node that is gone go after so long; it may come back by then.
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);

const RETRY: SignedDuration = SignedDuration::from_secs(1);

/// The taints that are ours to set and take away.
const OURS: [&str; 3] = [NOT_READY, UNREACHABLE, UNSCHEDULABLE];

impl Lifecycle {
    fn node_changed(&mut self, name: &SmolStr, object: Option<&SharedObject>, now: Timestamp) {
        let node = self.nodes.entry(name.clone()).or_insert_with(|| Node::new(now));
        if let (Some(known), Some(newer)) = (&node.object, object)
            && !newer.is_newer(known)
        {
            return;
        }
        if object.is_none() {
            node.heard = now;
        }
        node.object = object.cloned();
        self.timers.set(Key::node(name), now);
        for key in self.bound.get(name).into_iter().flatten() {
            self.timers.set(key.clone(), now);
        }
    }

    fn pod_changed(&mut self, key: &Key, pod: Option<&SharedObject>, now: Timestamp) {
        if let (Some(known), Some(newer)) = (self.pods.get(key), pod)
            && !newer.is_newer(known)
        {
            return;
        }
        let bound_to = |pod: &Value| SmolStr::from(text(field(pod, "spec"), "nodeName"));
        if let Some(pod) = pod.filter(|pod| !bound_to(pod).is_empty()) {
            let node = bound_to(pod);
            self.bound.entry(node.clone()).or_default().insert(key.clone());
            self.nodes.entry(node).or_insert_with(|| Node::new(now));
            self.pods.insert(key.clone(), pod.clone());
            self.timers.set(key.clone(), now);
        } else if let Some(known) = self.pods.remove(key) {
            if let Some(keys) = self.bound.get_mut(&bound_to(&known)) {
                keys.remove(key);
            }
            self.timers.clear(key);
        }
    }

    fn lease_changed(&mut self, key: &Key, lease: Option<&SharedObject>, now: Timestamp) {
        let renewed = lease.map(|lease| text(field(lease, "spec"), "renewTime"));
        let Some(renewed) = renewed.and_then(|text| text.parse::<Timestamp>().ok()) else { return };
        let node = self.nodes.entry(key.name.clone()).or_insert_with(|| Node::new(now));
        node.heard = node.heard.max(renewed);
        node.grace = lease.map_or(GRACE_MIN, |lease| {
            let seconds = field(field(lease, "spec"), "leaseDurationSeconds").as_i64().unwrap_or(0);
            SignedDuration::from_secs(seconds).max(GRACE_MIN)
        });
    }

    /// Marks a node that is silent, or brings its taints in line with how ready it is.
    fn node_due(&mut self, key: &Key, now: Timestamp) -> Option<WriteRequest> {
        let node = self.nodes.get(&key.name)?;
        let object = node.object.as_ref()?;
        let deadline = node.heard.checked_add(node.grace).unwrap_or(Timestamp::MAX);
        if now < deadline {
            self.timers.set(key.clone(), deadline);
        } else if let Some(request) = unknown(key, object, now) {
            return Some(request);
        }
        retaint(key, object, now)
    }

    fn pod_due(&mut self, key: &Key, now: Timestamp) -> Option<WriteRequest> {
        let pod = self.pods.get(key)?;
        let node = self.nodes.get(text(field(pod, "spec"), "nodeName"))?;
        let Some(object) = &node.object else {
            let end = node.heard.checked_add(QUARANTINE).unwrap_or(Timestamp::MAX);
            if now < end {
                self.timers.set(key.clone(), end);
                return None;
            }
            return Some(WriteRequest::delete(key.clone(), pod, Some(0)));
        };
        if let Some(request) = unready(key, pod, object, now) {
            return Some(request);
        }
        if !text(field(pod, "metadata"), "deletionTimestamp").is_empty() {
            return None;
        }
        let end = tolerated_until(pod, object, now)?;
        if now < end {
            self.timers.set(key.clone(), end);
            return None;
        }
        Some(WriteRequest::delete(key.clone(), pod, None))
    }
}

impl Component for Lifecycle {
    fn changed(&mut self, key: &Key, object: Option<&SharedObject>, now: Timestamp) {
        match key.kind {
            Kind::Node => self.node_changed(&key.name, object, now),
            Kind::Pod => self.pod_changed(key, object, now),
            Kind::Lease => self.lease_changed(key, object, now),
            Kind::Event => {}
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
        self.busy.remove(&request.key);
        let again = match response {
            WriteResponse::Done(_) if matches!(request.write, WriteVerb::Delete(_)) => return,
            WriteResponse::Done(_) => now,
            _ => now.checked_add(RETRY).unwrap_or(now),
        };
        self.timers.set(request.key.clone(), again);
    }

    fn due(&mut self, now: Timestamp) -> Vec<WriteRequest> {
        let mut requests = Vec::new();
        while let Some(key) = self.timers.pop(now) {
            if self.busy.contains(&key) {
                continue; // its response brings it back here
            }
            let request = match key.kind {
                Kind::Node => self.node_due(&key, now),
                Kind::Pod => self.pod_due(&key, now),
                Kind::Lease | Kind::Event => None,
            };
            if let Some(request) = request {
                self.busy.insert(key);
                requests.push(request);
            }
        }
        requests
    }

    fn next(&self) -> Option<Timestamp> {
        self.timers.next()
    }
}

fn ready_of(node: &Value) -> &str {
    let conditions = list(field(node, "status"), "conditions");
    let ready = conditions.iter().find(|condition| text(condition, "type") == "Ready");
    ready.map_or("", |ready| text(ready, "status"))
}

/// Says of a node that nothing is known, unless that is said already.
fn unknown(key: &Key, node: &Value, now: Timestamp) -> Option<WriteRequest> {
    if ready_of(node) == "Unknown" {
        return None;
    }
    let old = list(field(node, "status"), "conditions");
    let theirs = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
    let conditions = theirs.iter().map(|kind| {
        let before = old.iter().find(|condition| text(condition, "type") == *kind);
        let (reason, message) = match before {
            Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
            None => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
        };
        let heartbeat = before.map_or("", |before| text(before, "lastHeartbeatTime"));
        let heartbeat = if heartbeat.is_empty() { stamp(now) } else { heartbeat.to_owned() };
        json!({"type": kind, "status": "Unknown", "reason": reason, "message": message,
            "lastHeartbeatTime": heartbeat, "lastTransitionTime": stamp(now)})
    });
    let others = old.iter().filter(|condition| !theirs.contains(&text(condition, "type"))).cloned();
    let conditions: Vec<Value> = conditions.chain(others).collect();
    Some(WriteRequest::status(key.clone(), node, json!({"conditions": conditions})))
}

/// Sets the taints that go with how ready a node is and with its cordon, and takes away those
/// that do not.
fn retaint(key: &Key, node: &Value, now: Timestamp) -> Option<WriteRequest> {
    let spec = field(node, "spec");
    let state = match ready_of(node) {
        "True" => None,
        "Unknown" => Some(UNREACHABLE),
        _ => Some(NOT_READY),
    };
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    if let Some(state) = state {
        wanted.extend([(state, "NoSchedule"), (state, "NoExecute")]);
    }
    if field(spec, "unschedulable") == &Value::Bool(true) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let old = list(spec, "taints");
    let is_kept = |taint: &Value| {
        let (key, effect) = (text(taint, "key"), text(taint, "effect"));
        !OURS.contains(&key) || wanted.contains(&(key, effect))
    };
    let has = |(key, effect): &(&str, &str)| {
        old.iter().any(|taint| text(taint, "key") == *key && text(taint, "effect") == *effect)
    };
    let missing: Vec<_> = wanted.iter().filter(|taint| !has(taint)).collect();
    if missing.is_empty() && old.iter().all(is_kept) {
        return None;
    }
    let kept = old.iter().filter(|taint| is_kept(taint)).cloned();
    let added = missing.into_iter().map(|(key, effect)| {
        let mut taint = json!({"key": key, "effect": effect});
        if *effect == "NoExecute" {
            taint["timeAdded"] = json!(stamp(now));
        }
        taint
    });
    let taints: Vec<Value> = kept.chain(added).collect();
    let patch = json!({"metadata": fence(node), "spec": {"taints": taints}});
    Some(WriteRequest::new(key.clone(), WriteVerb::Merge(patch)))
}

/// A pod on a node that is not heard of is not ready, whatever it said last.
fn unready(key: &Key, pod: &Value, node: &Value, now: Timestamp) -> Option<WriteRequest> {
    if ready_of(node) != "Unknown" {
        return None;
    }
    let mut conditions = list(field(pod, "status"), "conditions").to_vec();
    let ready = conditions.iter_mut().find(|condition| text(condition, "type") == "Ready")?;
    if text(ready, "status") != "True" {
        return None;
    }
    *ready = json!({"type": "Ready", "status": "False", "reason": "NodeNotReady",
        "message": "Node is not ready", "lastProbeTime": null, "lastTransitionTime": stamp(now)});
    Some(WriteRequest::status(key.clone(), pod, json!({"conditions": conditions})))
}

/// Until when a pod may stay with the taints of its node; absent: for good.
fn tolerated_until(pod: &Value, node: &Value, now: Timestamp) -> Option<Timestamp> {
    let tolerations = list(field(pod, "spec"), "tolerations");
    let taints = list(field(node, "spec"), "taints").iter();
    let driving = taints.filter(|taint| text(taint, "effect") == "NoExecute");
    let ends = driving.filter_map(|value| {
        let taint = Taint::from_value(value);
        let since = text(value, "timeAdded").parse().unwrap_or(now);
        let fitting = tolerations.iter().filter(|t| Toleration::from_value(t).tolerates(&taint));
        // Of several tolerations the shortest counts; one without a time has no end.
        let seconds =
            fitting.map(|t| field(t, "tolerationSeconds").as_i64().unwrap_or(i64::MAX)).min();
        match seconds {
            None => Some(now),
            Some(i64::MAX) => None,
            Some(seconds) => since.checked_add(SignedDuration::from_secs(seconds.max(0))).ok(),
        }
    });
    ends.min()
}

#[cfg(test)]
mod tests;
