//! Whether a kubelet takes a pod that is bound to its node. Whoever names a node passes the
//! scheduler by, so that the node may have no room.

use convoy_api::object::member::field;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Held, Kubelets, started};
use crate::component::{Key, WriteRequest};
use crate::kubelet::{self, REJECTED, stamp};
use crate::scheduler::{Amounts, Rules, Shortage};

impl Kubelets {
    /// The status that refuses a pod for which its node has no room, or no free port. One that was admitted once
    /// stays so.
    pub(super) fn refuse(&mut self, key: &Key, now: Timestamp) -> Option<WriteRequest> {
        let held = self.pods.get(key)?;
        let machine = self.nodes.get(&held.node)?;
        if held.is_admitted() || held.is_busy || machine.is_silent() {
            return None;
        }
        let node = machine.object.as_ref()?;
        let mut has = Amounts::of_list(field(field(node, "status"), "allocatable"));
        if has == Amounts::default() {
            return None; // a node that somebody else made: nothing is known of it yet
        }
        if has.pods == 0 {
            has.pods = i64::MAX; // closed to the scheduler, and not to those who name the node
        }
        let mut used = Amounts::default();
        let rules = Rules::of(&held.object);
        let mut is_port_taken = false;
        let others = self.bound.get(&held.node).into_iter().flatten();
        for other in others.filter_map(|other| self.pods.get(other)) {
            if other.is_admitted() && !kubelet::is_terminal(&other.object) {
                used.add(&Amounts::of_pod(field(&other.object, "spec")));
                is_port_taken |= rules.takes_a_port_of(&other.object);
            }
        }
        let takes = Amounts::of_pod(field(&held.object, "spec"));
        let short = Shortage::all(&takes, &used, &has).next().map(no_room);
        let refused = short.or_else(|| is_port_taken.then(no_port));
        let request = refused.map(|(reason, message)| {
            WriteRequest::status(key.clone(), &held.object, refusal(&reason, &message, now))
        });
        let held = self.pods.get_mut(key)?;
        held.has_room = request.is_none();
        held.is_busy = request.is_some();
        request
    }
}

impl Held {
    /// Its kubelet has begun with it, or it goes anyway.
    fn is_admitted(&self) -> bool {
        self.has_room || self.ending.is_some() || started(&self.object).is_some()
    }
}

/// Reason and message, in the words of Kubernetes.
fn no_room(shortage: Shortage<'_>) -> (String, String) {
    let Shortage { resource, requested, used, capacity } = shortage;
    let message = format!(
        "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, \
         capacity: {capacity}"
    );
    (format!("OutOf{resource}"), message)
}

fn no_port() -> (String, String) {
    let cause = "node(s) didn't have free ports for the requested pod ports";
    ("NodePorts".to_owned(), format!("Predicate NodePorts failed: {cause}"))
}

fn refusal(reason: &str, message: &str, now: Timestamp) -> Value {
    let message = format!("{REJECTED}{message}");
    json!({"phase": "Failed", "reason": reason, "message": message, "startTime": stamp(now)})
}
