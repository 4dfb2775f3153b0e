//! Whether a kubelet takes a pod that is bound to its node. Whoever names a node passes the
//! scheduler by, so that the node may have no room.

use convoy_api::object::member::field;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Held, Kubelets, started};
use crate::component::{Key, WriteRequest};
use crate::kubelet::{self, REJECTED, stamp};
use crate::scheduler::{Amounts, Shortage};

impl Kubelets {
    /// The status that refuses a pod for which its node has no room. One that was admitted once
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
        let others = self.bound.get(&held.node).into_iter().flatten();
        for other in others.filter_map(|other| self.pods.get(other)) {
            if other.is_admitted() && !kubelet::is_terminal(&other.object) {
                used.add(&Amounts::of_pod(field(&other.object, "spec")));
            }
        }
        let takes = Amounts::of_pod(field(&held.object, "spec"));
        let request = Shortage::all(&takes, &used, &has).next().map(|shortage| {
            WriteRequest::status(key.clone(), &held.object, refusal(shortage, now))
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

fn refusal(shortage: Shortage<'_>, now: Timestamp) -> Value {
    let Shortage { resource, requested, used, capacity } = shortage;
    let message = format!(
        "{REJECTED}Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, \
         capacity: {capacity}"
    );
    let reason = format!("OutOf{resource}");
    json!({"phase": "Failed", "reason": reason, "message": message, "startTime": stamp(now)})
}
