//! How many members of a group are unavailable: nodes that are cordoned, tainted by Karpenter for
//! disruption, not ready or gone while a rollout has them, clusters on which what was placed does not work, and replicas that are asked
//! for and not ready.

use std::collections::BTreeMap;

use convoy_api::karpenter::names::{DISRUPTED_TAINT, NODE_POOL, label};
use convoy_api::kinds::{DAEMON_SET, DEPLOYMENT, NODE, POD, REPLICA_SET, STATEFUL_SET};
use convoy_api::object::member::{list, text};
use convoy_api::skyhook::SKYHOOK;
use convoy_api::{Object, ObjectKey};
use jiff::SignedDuration;
use serde_json::Value;

use super::placed::{Group, Placed};

/// On nodes, with a Skyhook's name behind it: the compartment that it was picked in.
const PICKED: &str = "skyhook.nvidia.com/batch_";

/// The most that were unavailable at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peak {
    now: u32,
    pub(super) most: u32,
    pub(super) at: SignedDuration,
}

#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// The groups that miss a node, or a cluster by its binding or work.
    members: BTreeMap<ObjectKey, Vec<Group>>,
    placed: Placed,
    /// The uid of the controller of a pod that is ready.
    pods: BTreeMap<ObjectKey, String>,
    ready: BTreeMap<String, u32>,
    /// Workloads by the uids of their controllers of pods.
    workloads: BTreeMap<String, ObjectKey>,
    wanted: BTreeMap<ObjectKey, u32>,
    peaks: BTreeMap<Group, Peak>,
    has_begun: bool,
}

impl Readiness {
    /// The initial state is complete: from here on it counts.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            for peak in self.peaks.values_mut() {
                (peak.most, peak.at) = (peak.now, SignedDuration::ZERO);
            }
            let all: Vec<ObjectKey> = self.wanted.keys().cloned().collect();
            for workload in all {
                self.measure(&workload, SignedDuration::ZERO);
            }
        }
    }

    pub(super) fn peak(&self, rollout: &ObjectKey, group: &str) -> Peak {
        let exact = self.peaks.get(&(rollout.clone(), group.to_owned()));
        exact.copied().unwrap_or_default()
    }

    pub(super) fn see(&mut self, object: &Object, is_deleted: bool, at: SignedDuration) {
        let kind = object.kind();
        if !object.key().cluster.is_empty() {
            return; // What becomes of it there, works and bindings tell.
        }
        self.placed.see(object);
        if let Some(missed) = self.placed.missed(object) {
            self.miss(object, missed, is_deleted, at);
        } else if *kind == NODE {
            self.see_node(object, is_deleted, at);
        } else if *kind == POD {
            self.see_pod(object, is_deleted, at);
        } else if *kind == REPLICA_SET && !is_deleted {
            let owner = object.controller().filter(|owner| owner.kind == "Deployment");
            if let (Some(owner), Some(uid)) = (owner, object.uid()) {
                let key = DEPLOYMENT.key(object.namespace(), owner.name);
                self.workloads.insert(uid.to_owned(), key);
            }
        } else if [DEPLOYMENT, STATEFUL_SET, DAEMON_SET].contains(kind) {
            let wanted = if *kind == DAEMON_SET {
                object.status_member("desiredNumberScheduled").and_then(Value::as_u64)
            } else {
                Some(object.spec_member("replicas").and_then(Value::as_u64).unwrap_or(1))
            };
            let wanted = wanted.unwrap_or(0);
            let key = object.key().clone();
            self.workloads.insert(object.uid().unwrap_or_default().to_owned(), key.clone());
            self.wanted.insert(key.clone(), u32::try_from(wanted).unwrap_or(u32::MAX));
            self.measure(&key, at);
        }
    }

    fn see_node(&mut self, node: &Object, is_deleted: bool, at: SignedDuration) {
        let is_out = is_deleted
            || node.condition_status("Ready").is_some_and(|ready| ready != "True")
            || node.spec().get("unschedulable").and_then(Value::as_bool) == Some(true)
            || list(node.spec(), "taints").iter().any(|it| text(it, "key") == DISRUPTED_TAINT);
        let missed = if is_out { groups(node) } else { Vec::new() };
        self.miss(node, missed, is_deleted, at);
    }

    /// Some groups miss a member from now on, and no others.
    fn miss(&mut self, member: &Object, missed: Vec<Group>, is_deleted: bool, at: SignedDuration) {
        let before = if is_deleted {
            self.members.remove(member.key())
        } else {
            self.members.insert(member.key().clone(), missed.clone())
        };
        for group in before.into_iter().flatten() {
            let peak = self.peaks.entry(group).or_default();
            peak.now = peak.now.saturating_sub(1);
        }
        // What is gone is no member any more.
        for group in missed.into_iter().filter(|_| !is_deleted) {
            let peak = self.peaks.entry(group).or_default();
            peak.rise(peak.now + 1, at);
        }
    }

    fn see_pod(&mut self, pod: &Object, is_deleted: bool, at: SignedDuration) {
        let is_ready =
            !is_deleted && !pod.is_deleting() && pod.condition_status("Ready") == Some("True");
        let owner = pod.controller().map(|owner| owner.uid.to_owned()).filter(|_| is_ready);
        let before = match owner.clone() {
            Some(uid) => self.pods.insert(pod.key().clone(), uid),
            None => self.pods.remove(pod.key()),
        };
        if before == owner {
            return;
        }
        if let Some(uid) = &before {
            let ready = self.ready.entry(uid.clone()).or_default();
            *ready = ready.saturating_sub(1);
        }
        if let Some(uid) = &owner {
            *self.ready.entry(uid.clone()).or_default() += 1;
        }
        for uid in before.iter().chain(&owner) {
            if let Some(workload) = self.workloads.get(uid).cloned() {
                self.measure(&workload, at);
            }
        }
    }

    /// Compares what a workload wants with what it has.
    fn measure(&mut self, workload: &ObjectKey, at: SignedDuration) {
        let Some(wanted) = self.wanted.get(workload).filter(|_| self.has_begun) else { return };
        let own = self.workloads.iter().filter(|(_, of)| *of == workload);
        let ready: u32 = own.filter_map(|(uid, _)| self.ready.get(uid)).sum();
        let missing = wanted.saturating_sub(ready);
        self.peaks.entry((workload.clone(), String::new())).or_default().rise(missing, at);
    }
}

impl Peak {
    fn rise(&mut self, now: u32, at: SignedDuration) {
        self.now = now;
        if now > self.most {
            (self.most, self.at) = (now, at);
        }
    }
}

/// The groups of rollouts that have a node.
fn groups(node: &Object) -> Vec<Group> {
    let marks =
        node.annotations().filter_map(|(key, mark)| Some((key.strip_prefix(PICKED)?, mark)));
    let mut found: Vec<Group> = marks
        .filter_map(|(skyhook, mark)| {
            let mark: Value = serde_json::from_str(mark).ok()?;
            Some((SKYHOOK.key("", skyhook), text(&mark, "compartment").to_owned()))
        })
        .collect();
    let pool = node.label(label::NODE_POOL);
    found.extend(pool.map(|pool| (NODE_POOL.key("", pool), pool.to_owned())));
    found
}
