//! Progress of a Deployment: the counters of its status, whether it is complete, pausing, the
//! deadline, failures of ReplicaSets.

use jiff::Timestamp;

use super::DeploymentDecision;
use crate::condition::dated::Entry;
use crate::dialect::apps::names::{
    AVAILABLE, COMPLETE, PAUSED, PROGRESSING, REPLICA_FAILURE, TIMED_OUT,
};
use crate::elapsed::passed_at;

/// The numbers of a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) replicas: i64,
    pub(crate) updated: i64,
    pub(crate) ready: i64,
    pub(crate) available: i64,
    pub(crate) unavailable: i64,
    /// Absent where one of the sets does not say.
    pub(crate) terminating: Option<i64>,
}

impl DeploymentDecision<'_> {
    pub(super) fn set_progressing(&mut self, status: &str, reason: &str, message: &str) {
        self.conditions.set(PROGRESSING, status, reason, message, self.now);
    }

    /// Sums up what the sets report.
    pub(super) fn count(&mut self) {
        let mut counters = Counters { terminating: Some(0), ..Counters::default() };
        for set in &self.sets {
            counters.replicas += set.counts.replicas;
            counters.ready += set.counts.ready;
            counters.available += set.counts.available;
            counters.terminating =
                counters.terminating.zip(set.counts.terminating).map(|(sum, more)| sum + more);
        }
        counters.updated = self.new_set().map_or(0, |set| set.counts.replicas);
        counters.unavailable = (self.total() - counters.available).max(0);
        self.counters = counters;
    }

    /// Whether enough replicas are available.
    pub(super) fn note_availability(&mut self) {
        let least = self.deployment.replicas - self.deployment.may_be_missing();
        let (status, reason, message) = if self.counters.available >= least {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            (
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
        self.conditions.set(AVAILABLE, status, reason, message, self.now);
    }

    /// Pausing and resuming both restart the clock of the deadline.
    pub(crate) fn note_pause(&mut self) {
        let reason = self.conditions.reason(PROGRESSING);
        if self.deployment.deadline_secs.is_none() || reason == TIMED_OUT {
            return;
        }
        if self.deployment.paused && reason != PAUSED {
            self.set_progressing("Unknown", PAUSED, "Deployment is paused");
        } else if !self.deployment.paused && reason == PAUSED {
            let message = "Deployment is resumed";
            self.set_progressing("Unknown", "DeploymentResumed", message);
        }
    }

    /// Judges a rollout by what has changed since its status was last written.
    pub(super) fn note_progress(&mut self) {
        let Some(deadline_secs) = self.deployment.deadline_secs else {
            self.conditions.remove(PROGRESSING);
            return;
        };
        let is_known = self.conditions.find(PROGRESSING).is_some();
        let reason = self.conditions.reason(PROGRESSING);
        if self.counters.replicas == self.counters.updated && reason == COMPLETE {
            return;
        }
        let who = match self.new_name() {
            Some(name) => format!("ReplicaSet {name:?}"),
            None => format!("Deployment {:?}", self.deployment.object.name().as_str()),
        };
        if self.is_complete() {
            self.set_progressing("True", COMPLETE, &format!("{who} has successfully progressed."));
        } else if self.has_progressed() {
            let (reason, message) = ("ReplicaSetUpdated", format!("{who} is progressing."));
            self.conditions.renew(PROGRESSING, "True", reason, &message, self.now);
        } else if is_known && self.is_timed_out(deadline_secs) {
            self.set_progressing("False", TIMED_OUT, &format!("{who} has timed out progressing."));
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        let (counters, n) = (&self.counters, self.deployment.replicas);
        counters.updated == n && counters.replicas == n && counters.available == n
    }

    fn has_progressed(&self) -> bool {
        let (counters, before) = (&self.counters, &self.deployment.stored);
        counters.updated > before.updated
            || counters.replicas - counters.updated < before.replicas - before.updated
            || counters.ready > before.ready
            || counters.available > before.available
    }

    fn is_timed_out(&self, deadline_secs: i64) -> bool {
        let current = self.conditions.find(PROGRESSING);
        match self.conditions.reason(PROGRESSING) {
            COMPLETE => false,
            TIMED_OUT => true,
            _ => current
                .and_then(Entry::updated_at)
                .and_then(|since| passed_at(since, deadline_secs))
                .is_none_or(|at| at <= self.now),
        }
    }

    /// The first instant at which the deadline strikes, unless the rollout moves before.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let secs = self.deployment.deadline_secs?;
        let current = self.conditions.find(PROGRESSING)?;
        let over = [TIMED_OUT, COMPLETE].contains(&current.reason());
        if over || self.is_complete() {
            return None;
        }
        let at = passed_at(current.updated_at()?, secs)?;
        (at > self.now).then_some(at)
    }

    /// A failure of the new set counts before those of old ones.
    pub(super) fn note_replica_failure(&mut self) {
        let of_new = self.new_set().and_then(|set| Entry::of(set.object, REPLICA_FAILURE));
        let of_old = || self.old().find_map(|set| Entry::of(set.object, REPLICA_FAILURE));
        match of_new.or_else(of_old) {
            Some(failure) => self.conditions.copy(REPLICA_FAILURE, failure, self.now),
            None => self.conditions.remove(REPLICA_FAILURE),
        }
    }
}
