//! The machines under the kubelets: made from templates, renewing leases, and what befalls
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;

use convoy_api::object::member::{field, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::{Kubelets, RETRY, Timer, host_of, node};
use crate::component::{Key, WriteRequest, WriteResponse, WriteVerb};
use crate::node::{Power, annotated_power, annotation};
use crate::scenario::{NodeEventKind, PREFIX};
use crate::seed::Seed;
use crate::shared_object::SharedObject;

#[derive(Debug, Default)]
pub(super) struct Machine {
    pub(super) object: Option<SharedObject>,
    /// What the scenario has made of it.
    power: Power,
    boots: u32,
    pub(super) reboots: Vec<Timestamp>,
    /// The reboot annotation as last seen.
    reboot_asked: Option<String>,
    is_rebooting: bool,
    /// Ends of pod addresses in use.
    taken: BTreeSet<u8>,
    is_busy: bool,
    has_lease: bool,
}

/// How long a reboot takes, where the scenario does not say.
const REBOOT: SignedDuration = SignedDuration::from_secs(30);

impl Machine {
    fn power(&self) -> Power {
        match (self.power, &self.object) {
            (Power::Up, Some(node)) => annotated_power(node),
            (power, _) => power,
        }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.power() == Power::Silent
    }

    pub(super) fn host(&self) -> String {
        self.object.as_deref().map_or_else(String::new, host_of)
    }

    /// The address a pod has, or the first free one of the node's range.
    pub(super) fn take_address(&mut self, pod: &Value) -> String {
        let known = text(field(pod, "status"), "podIP");
        if let Some(last) = known.rsplit('.').next().and_then(|last| last.parse().ok()) {
            self.taken.insert(last);
            return known.to_owned();
        }
        let range = self.object.as_deref().map_or("", |node| text(field(node, "spec"), "podCIDR"));
        let prefix = range.rsplit_once('.').map_or("10.255.255", |(prefix, _)| prefix);
        let free = (1..=254).find(|last| !self.taken.contains(last)).unwrap_or(254);
        self.taken.insert(free);
        format!("{prefix}.{free}")
    }

    pub(super) fn release(&mut self, address: &str) {
        if let Some(last) = address.rsplit('.').next().and_then(|last| last.parse().ok()) {
            self.taken.remove(&last);
        }
    }
}

impl Kubelets {
    /// Makes the nodes of the scenario and sets the timers of its events, once.
    pub(super) fn begin(&mut self, now: Timestamp) -> Vec<WriteRequest> {
        if self.begun.is_some() {
            return Vec::new();
        }
        self.begun = Some(now);
        let scenario = Arc::clone(&self.scenario);
        let mut requests = Vec::new();
        let mut index = 0;
        for template in &scenario.nodes {
            for in_template in 0..template.count {
                let object =
                    node::node(&scenario, &self.version, template, in_template, index, now);
                let key = Key::of(crate::component::Kind::Node, &object);
                self.unmade.insert(key.name.clone());
                self.nodes.entry(key.name.clone()).or_default();
                requests.push(WriteRequest::new(key, WriteVerb::Create(object)));
                index += 1;
            }
        }
        let names = self.node_names();
        for name in names {
            self.expect(&name);
        }
        requests
    }

    /// Sets the timers of what the scenario has in store for a node.
    fn expect(&mut self, name: &SmolStr) {
        let Some(begun) = self.begun else { return };
        for (index, event) in self.scenario.node_events.iter().enumerate() {
            if event.node.matches(name) {
                let seed = Seed::new(self.scenario.seed).child("event", name);
                let delay = event.at.draw(seed.nth(u32::try_from(index).unwrap_or(u32::MAX)));
                let instant = begun.checked_add(delay).unwrap_or(Timestamp::MAX);
                self.timers.set(Timer::Event(name.clone(), index), instant);
            }
        }
    }

    pub(super) fn node_changed(
        &mut self,
        name: &SmolStr,
        object: Option<&SharedObject>,
        now: Timestamp,
    ) {
        let Some(object) = object.filter(|object| node::is_simulated(object)) else {
            // Deleted, or somebody else's: its kubelet is no longer ours to play.
            if self.nodes.remove(name).is_some() {
                self.unmade.remove(name);
            }
            return;
        };
        self.unmade.remove(name);
        let is_new = !self.nodes.contains_key(name);
        let machine = self.nodes.entry(name.clone()).or_default();
        if machine.object.as_ref().is_some_and(|known| !object.is_newer(known)) {
            return;
        }
        let asked = annotation(object, "reboot").map(str::to_owned);
        let is_first = machine.object.is_none();
        let reboots = !is_first && asked.is_some() && asked != machine.reboot_asked;
        machine.reboot_asked = asked;
        let before = machine.power();
        let orders_differ = |known: &SharedObject| !orders(known).eq(orders(object));
        let have_orders_changed = machine.object.as_ref().is_some_and(orders_differ);
        machine.object = Some(object.clone());
        let turned = before != machine.power();
        if is_first || turned {
            self.timers.set(Timer::Lease(name.clone()), now);
        }
        if is_new {
            self.expect(name);
        }
        if reboots {
            self.apply_node_event(name, NodeEventKind::Reboot, None, now);
        }
        if is_first || turned || have_orders_changed {
            self.wake_pods(name, now);
        }
        self.timers.set(Timer::Node(name.clone()), now);
    }

    /// What the kubelet writes about its node, if it reads otherwise.
    pub(super) fn node_due(&mut self, name: &SmolStr, now: Timestamp) -> Option<WriteRequest> {
        let machine = self.nodes.get_mut(name)?;
        let object = machine.object.clone()?;
        if machine.is_busy || machine.is_silent() {
            return None;
        }
        let mut status = node::missing(&self.scenario, &self.version, name, &object);
        let conditions = node::conditions(&object, machine.power(), now);
        if !super::agrees(field(field(&object, "status"), "conditions"), &conditions) {
            status["conditions"] = conditions;
        }
        if machine.boots > 0 {
            let boot = node::boot_id(&self.scenario, name, machine.boots);
            if text(field(field(&object, "status"), "nodeInfo"), "bootID") != boot {
                status["nodeInfo"] = json!({"bootID": boot});
            }
        }
        if status.as_object().is_none_or(serde_json::Map::is_empty) {
            return None;
        }
        machine.is_busy = true;
        Some(WriteRequest::status(Key::node(name), &object, status))
    }

    pub(super) fn node_response(
        &mut self,
        name: &SmolStr,
        write: &WriteVerb,
        response: &WriteResponse,
        now: Timestamp,
    ) {
        let Some(machine) = self.nodes.get_mut(name) else { return };
        machine.is_busy = false;
        match (write, response) {
            // Of a node of an earlier run the watch brings the object; then it is made.
            (WriteVerb::Create(_), WriteResponse::Done(_) | WriteResponse::Exists) => {}
            // What somebody else wrote meanwhile has not been answered to.
            (_, WriteResponse::Done(_)) => self.timers.set(Timer::Node(name.clone()), now),
            (WriteVerb::Create(_), WriteResponse::Failed(message)) => {
                tracing::warn!(node = %name, message, "could not make a node");
                self.unmade.remove(name);
                self.nodes.remove(name);
            }
            _ => {
                let again = now.checked_add(RETRY).unwrap_or(now);
                self.timers.set(Timer::Node(name.clone()), again);
            }
        }
    }

    pub(super) fn lease_due(&mut self, name: &SmolStr, now: Timestamp) -> Option<WriteRequest> {
        let scenario = Arc::clone(&self.scenario);
        let machine = self.nodes.get_mut(name)?;
        let object = machine.object.clone()?;
        if machine.is_silent() {
            return None;
        }
        let lasts = node::lease_seconds(scenario.heartbeat.longest());
        let request = if machine.has_lease {
            let (key, patch) = node::renewal(name, lasts, now);
            WriteRequest { is_background: true, ..WriteRequest::new(key, WriteVerb::Merge(patch)) }
        } else {
            WriteRequest::new(Key::lease(name), WriteVerb::Create(node::lease(&object, lasts, now)))
        };
        // The first pause is shorter by chance, so that not all renew at once.
        let seed = Seed::new(scenario.seed).child("lease", name);
        let pause = scenario.heartbeat.draw(seed);
        let nanos = i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX);
        let pause = if machine.has_lease {
            pause
        } else {
            SignedDuration::from_nanos(seed.nth(1).between(nanos / 10, nanos))
        };
        self.timers
            .set(Timer::Lease(name.clone()), now.checked_add(pause).unwrap_or(Timestamp::MAX));
        Some(request)
    }

    pub(super) fn lease_response(
        &mut self,
        name: &SmolStr,
        response: &WriteResponse,
        now: Timestamp,
    ) {
        let Some(machine) = self.nodes.get_mut(name) else { return };
        machine.has_lease = match response {
            WriteResponse::Done(_) | WriteResponse::Exists => true,
            WriteResponse::Missing => false,
            WriteResponse::Conflict | WriteResponse::Failed(_) => machine.has_lease,
        };
        if !matches!(response, WriteResponse::Done(_)) {
            let again = now.checked_add(RETRY).unwrap_or(now);
            self.timers.set(Timer::Lease(name.clone()), again);
        }
    }

    pub(super) fn event_due(
        &mut self,
        name: &SmolStr,
        index: usize,
        now: Timestamp,
    ) -> Option<WriteRequest> {
        let event = self.scenario.node_events.get(index)?.clone();
        let seed = Seed::new(self.scenario.seed).child("lasts", name);
        let lasts = event.lasts.map(|lasts| lasts.draw(seed));
        self.apply_node_event(name, event.event, lasts, now)
    }

    pub(super) fn apply_node_event(
        &mut self,
        name: &SmolStr,
        event: NodeEventKind,
        lasts: Option<SignedDuration>,
        now: Timestamp,
    ) -> Option<WriteRequest> {
        let machine = self.nodes.get_mut(name)?;
        let lasts = match event {
            NodeEventKind::Vanish => {
                let object = machine.object.clone()?;
                machine.power = Power::Silent;
                return Some(WriteRequest::delete(Key::node(name), &object, None));
            }
            NodeEventKind::NotReady => {
                machine.power = Power::NotReady;
                lasts
            }
            NodeEventKind::Silent => {
                machine.power = Power::Silent;
                lasts
            }
            NodeEventKind::Reboot => {
                machine.power = Power::Silent;
                machine.is_rebooting = true;
                Some(lasts.unwrap_or(REBOOT))
            }
        };
        if let Some(end) = lasts.and_then(|lasts| now.checked_add(lasts).ok()) {
            self.timers.set(Timer::Over(name.clone()), end);
        }
        self.timers.set(Timer::Node(name.clone()), now);
        None
    }

    /// What befell a node is over.
    pub(super) fn event_over(&mut self, name: &SmolStr, now: Timestamp) {
        let Some(machine) = self.nodes.get_mut(name) else { return };
        machine.power = Power::Up;
        if std::mem::take(&mut machine.is_rebooting) {
            machine.boots += 1;
            machine.reboots.push(now);
        }
        self.timers.set(Timer::Node(name.clone()), now);
        self.timers.set(Timer::Lease(name.clone()), now);
        self.wake_pods(name, now);
    }
}

/// What people say about a simulated node, and so about its pods.
fn orders(node: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let annotations = field(field(node, "metadata"), "annotations").as_object();
    annotations.into_iter().flatten().filter(|(key, _)| key.starts_with(PREFIX))
}
