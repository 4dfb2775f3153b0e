//! A ReplicaSet as a rollout of its own: how many pods it wants, and which it has. The same for a
//! ReplicationController, which differs in its selector only.

use convoy_api::Object;
use convoy_api::apps::POD;
use convoy_api::apps::spec::ReplicaSetSpec;
use jiff::Timestamp;
use serde_json::Value;

use super::template;
use crate::ownership::{self, Claim, claim};
use crate::pods::active::{ActivePod, Readiness};
use crate::pods::{available_at, is_finished};
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// A ReplicaSet and its pods.
#[derive(Debug)]
pub(crate) struct ReplicaSet<'o> {
    pub(crate) object: &'o Object,
    pub(crate) now: Timestamp,
    pub(crate) replicas: usize,
    pub(crate) min_ready_secs: i64,
    /// Ours or ours from now on, neither finished nor terminating.
    pub(crate) active: Vec<ActivePod<'o>>,
    pub(crate) adopted: Vec<&'o Object>,
    pub(crate) released: Vec<&'o Object>,
    /// How many of ours are terminating.
    pub(crate) terminating: usize,
}

impl<'o> ReplicaSet<'o> {
    /// Reads a ReplicaSet; the field that cannot be understood otherwise.
    pub(crate) fn read(snapshot: &Snapshot<'o>, now: Timestamp) -> Result<Self, String> {
        let object = snapshot.rollout();
        let spec: ReplicaSetSpec = object.spec_view().map_err(|error| error.field)?;
        let selector = ownership::selector(object).ok_or("spec.selector")?;
        let replicas = usize::try_from(spec.replicas.unwrap_or(1)).map_err(|_| "spec.replicas")?;
        let mut set = Self {
            object,
            now,
            replicas,
            min_ready_secs: spec.min_ready_seconds.unwrap_or(0).max(0),
            active: Vec::new(),
            adopted: Vec::new(),
            released: Vec::new(),
            terminating: 0,
        };
        for pod in snapshot.of(&POD) {
            set.take_in(pod, &selector);
        }
        Ok(set)
    }

    fn take_in(&mut self, pod: &'o Object, selector: &Selector) {
        let claim = claim(self.object, selector, pod);
        if is_finished(pod) {
            return;
        }
        if pod.is_deleting() {
            self.terminating += usize::from(claim == Claim::Keep);
            return;
        }
        match claim {
            Claim::Ignore => return,
            Claim::Release => return self.released.push(pod),
            Claim::Adopt => self.adopted.push(pod),
            Claim::Keep => {}
        }
        self.active.push(ActivePod::new(pod));
    }

    /// Whether its template has labels: without them, new pods would not be its own.
    pub(crate) fn has_pod_labels(&self) -> bool {
        let labels = template(self.object).pointer("/metadata/labels").and_then(Value::as_object);
        labels.is_some_and(|labels| !labels.is_empty())
    }

    pub(crate) fn is_available(&self, pod: &ActivePod<'_>) -> bool {
        match pod.ready {
            Readiness::False => false,
            Readiness::True { .. } if self.min_ready_secs == 0 => true,
            Readiness::True { since } => since.is_some_and(|since| {
                self.available_at(since).is_some_and(|available_at| available_at <= self.now)
            }),
        }
    }

    /// When a pod that is ready since then counts as available.
    pub(crate) fn available_at(&self, since: Timestamp) -> Option<Timestamp> {
        available_at(since, self.min_ready_secs)
    }
}
