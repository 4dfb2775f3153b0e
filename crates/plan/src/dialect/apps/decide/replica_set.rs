//! The ReplicaSet: as many pods as wanted, made and deleted by rank.
//!
//! A pure step of its own: on a real cluster kube-controller-manager does this, so nothing of
//! the Deployment's decision relies on it.

use convoy_api::Object;
use convoy_api::apps::POD;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::rank;
use crate::dialect::apps::read::pod::{Condition, Pod};
use crate::ownership::{Claim, claim};
use crate::selector::Selector;
use crate::snapshot::Snapshot;
use crate::step::Step;

/// The most pods made or deleted in one step.
pub(crate) const BURST: usize = 500;

/// One reconcile of a ReplicaSet.
#[derive(Debug)]
pub(crate) struct Reconcile<'o> {
    pub(crate) object: &'o Object,
    pub(crate) now: Timestamp,
    pub(crate) replicas: usize,
    pub(crate) min_ready_secs: i64,
    /// Ours or ours from now on, and alive.
    pub(crate) active: Vec<Pod<'o>>,
    pub(crate) adopted: Vec<&'o Object>,
    pub(crate) released: Vec<&'o Object>,
    /// Ours, on their way out.
    pub(crate) terminating: usize,
    /// How many pods are made.
    pub(crate) make: usize,
    /// How many more are missing than one step makes.
    pub(crate) left: usize,
    pub(crate) deleted: Vec<&'o Object>,
}

pub(crate) fn step(snapshot: &Snapshot<'_>, now: Timestamp) -> Step {
    match Reconcile::read(snapshot, now) {
        Ok(reconcile) => crate::dialect::apps::report::replica_set::step(&reconcile, snapshot),
        Err(field) => crate::dialect::apps::invalid(snapshot.rollout(), vec![field.to_owned()]),
    }
}

/// The status of a set that cannot be managed, for this reason; none if it is not understood.
pub(crate) fn failed_status(
    snapshot: &Snapshot<'_>,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Option<Value> {
    let failure = crate::condition::Condition {
        kind: crate::dialect::apps::decide::progress::REPLICA_FAILURE.into(),
        status: "True",
        reason: reason.into(),
        message: message.into(),
        observed_generation: None,
    };
    let reconcile = Reconcile::read(snapshot, now).ok()?;
    Some(crate::dialect::apps::report::replica_set::status(&reconcile, Some(&failure)))
}

impl<'o> Reconcile<'o> {
    /// What is decided; the field that is wrong if it cannot be.
    fn read(snapshot: &'o Snapshot<'o>, now: Timestamp) -> Result<Self, &'static str> {
        let spec = snapshot.rollout().spec();
        let selector = Selector::from_value(spec.get("selector").unwrap_or(&Value::Null));
        let replicas = spec.get("replicas").filter(|value| !value.is_null());
        let replicas = replicas.map_or(Some(1), |value| value.as_u64()?.try_into().ok());
        match (selector, replicas) {
            (Ok(selector), Some(replicas)) if !selector.is_empty() => {
                Ok(Self::new(snapshot, &selector, replicas, now))
            }
            (Ok(_), None) => Err("spec.replicas"),
            _ => Err("spec.selector"),
        }
    }

    fn new(
        snapshot: &'o Snapshot<'o>,
        selector: &Selector,
        replicas: usize,
        now: Timestamp,
    ) -> Self {
        let object = snapshot.rollout();
        let min_ready_secs = object.spec().get("minReadySeconds").and_then(Value::as_i64);
        let mut reconcile = Self {
            object,
            now,
            replicas,
            min_ready_secs: min_ready_secs.unwrap_or(0).max(0),
            active: Vec::new(),
            adopted: Vec::new(),
            released: Vec::new(),
            terminating: 0,
            make: 0,
            left: 0,
            deleted: Vec::new(),
        };
        for pod in snapshot.of(&POD) {
            reconcile.look_at(pod, selector);
        }
        if !object.is_deleting() {
            reconcile.manage(snapshot);
        }
        reconcile
    }

    fn look_at(&mut self, pod: &'o Object, selector: &Selector) {
        let claim = claim(self.object, selector, pod);
        if crate::dialect::apps::decide::recreate::is_over(pod) {
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
        self.active.push(Pod::new(pod));
    }

    /// Makes what is missing, or deletes what is too many.
    fn manage(&mut self, snapshot: &Snapshot<'o>) {
        let missing = self.replicas.saturating_sub(self.active.len());
        let labelled = self.object.spec().pointer("/template/metadata/labels");
        let labelled = labelled.and_then(Value::as_object).is_some_and(|map| !map.is_empty());
        self.make = if labelled { missing.min(BURST) } else { 0 };
        self.left = missing - self.make;
        let excess = self.active.len().saturating_sub(self.replicas).min(BURST);
        if excess == self.active.len() {
            self.deleted = self.active.iter().map(|pod| pod.object).collect();
        } else if excess > 0 {
            let is_available = |pod: &Pod<'o>| self.is_available(pod);
            self.deleted =
                rank::first(&self.active, excess, self.object, snapshot, self.now, is_available);
        }
    }

    pub(crate) fn is_available(&self, pod: &Pod<'_>) -> bool {
        match pod.ready {
            Condition::False => false,
            Condition::True { .. } if self.min_ready_secs == 0 => true,
            Condition::True { since } => since.is_some_and(|since| {
                self.available_at(since).is_some_and(|available_at| available_at <= self.now)
            }),
        }
    }

    pub(crate) fn available_at(&self, since: Timestamp) -> Option<Timestamp> {
        since.checked_add(SignedDuration::from_secs(self.min_ready_secs)).ok()
    }
}
