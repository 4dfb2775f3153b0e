//! Conditions of a Deployment: pausing, progress and its deadline, failures of ReplicaSets.

use convoy_api::object::member::{member, text};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::condition::{self, instant};
use crate::dialect::apps::decide::Pass;
use crate::dialect::apps::status::Counters;

pub(crate) const PROGRESSING: &str = "Progressing";
pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";
pub(crate) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
pub(crate) const COMPLETE: &str = "NewReplicaSetAvailable";
const PAUSED: &str = "DeploymentPaused";

/// The entry of a type.
pub(crate) fn find<'c>(conditions: &'c [Value], kind: &str) -> Option<&'c Value> {
    conditions.iter().find(|entry| member(entry, "type").and_then(Value::as_str) == Some(kind))
}

pub(crate) fn word<'c>(condition: Option<&'c Value>, field: &str) -> &'c str {
    condition.map_or("", |entry| text(entry, field))
}

/// Sets a condition the way Deployments do: the same status and reason leave it untouched,
/// anything else goes to the end of the list. `since` keeps its value while the status does.
pub(crate) fn set(
    conditions: &mut Vec<Value>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let before = find(conditions, kind);
    if word(before, "status") == status && word(before, "reason") == reason {
        return;
    }
    let since = before
        .filter(|entry| word(Some(entry), "status") == status)
        .and_then(|entry| entry.get("lastTransitionTime"))
        .filter(|at| at.is_string())
        .cloned();
    let entry = json!({
        "type": kind,
        "status": status,
        "lastUpdateTime": instant(now),
        "lastTransitionTime": since.unwrap_or_else(|| instant(now)),
        "reason": reason,
        "message": message,
    });
    condition::remove(conditions, kind);
    conditions.push(entry);
}

impl Pass<'_> {
    pub(crate) fn set_progressing(&mut self, status: &str, reason: &str, message: &str) {
        set(&mut self.conditions, PROGRESSING, status, reason, message, self.now);
    }

    /// Pausing and resuming both restart the clock of the deadline.
    pub(crate) fn note_pause(&mut self) {
        let reason = word(find(&self.conditions, PROGRESSING), "reason");
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
    pub(crate) fn note_progress(&mut self, counters: &Counters) {
        let Some(deadline_secs) = self.deployment.deadline_secs else {
            condition::remove(&mut self.conditions, PROGRESSING);
            return;
        };
        let current = find(&self.conditions, PROGRESSING);
        let reason = word(current, "reason");
        if counters.replicas == counters.updated && reason == COMPLETE {
            return;
        }
        let who = match self.new_name() {
            Some(name) => format!("ReplicaSet {name:?}"),
            None => format!("Deployment {:?}", self.deployment.object.name().as_str()),
        };
        if self.is_complete(counters) {
            self.set_progressing("True", COMPLETE, &format!("{who} has successfully progressed."));
        } else if self.has_progressed(counters) {
            // Taken out first, so that the time of the last progress is always renewed.
            let since = current.filter(|entry| word(Some(entry), "status") == "True");
            let since = since.and_then(|entry| entry.get("lastTransitionTime")).cloned();
            condition::remove(&mut self.conditions, PROGRESSING);
            self.set_progressing("True", "ReplicaSetUpdated", &format!("{who} is progressing."));
            if let (Some(since), Some(entry)) = (since, self.conditions.last_mut()) {
                entry["lastTransitionTime"] = since;
            }
        } else if current.is_some() && self.is_timed_out(deadline_secs) {
            self.set_progressing("False", TIMED_OUT, &format!("{who} has timed out progressing."));
        }
    }

    pub(crate) fn is_complete(&self, counters: &Counters) -> bool {
        let n = self.deployment.replicas;
        counters.updated == n && counters.replicas == n && counters.available == n
    }

    fn has_progressed(&self, counters: &Counters) -> bool {
        let before = |field: &str| self.deployment.stored(field);
        let old_before = before("replicas") - before("updatedReplicas");
        counters.updated > before("updatedReplicas")
            || counters.replicas - counters.updated < old_before
            || counters.ready > before("readyReplicas")
            || counters.available > before("availableReplicas")
    }

    fn is_timed_out(&self, deadline_secs: i64) -> bool {
        let current = find(&self.conditions, PROGRESSING);
        match word(current, "reason") {
            COMPLETE => false,
            TIMED_OUT => true,
            _ => timestamp(current.and_then(|entry| entry.get("lastUpdateTime")))
                .and_then(|at| at.checked_add(SignedDuration::from_secs(deadline_secs)).ok())
                .is_none_or(|at| at < self.now),
        }
    }

    /// The first instant at which the deadline strikes, unless the rollout moves before.
    pub(crate) fn deadline(&self, counters: &Counters) -> Option<Timestamp> {
        let secs = self.deployment.deadline_secs?;
        let current = find(&self.conditions, PROGRESSING)?;
        let over = [TIMED_OUT, COMPLETE].contains(&word(Some(current), "reason"));
        if over || self.is_complete(counters) {
            return None;
        }
        let since = timestamp(current.get("lastUpdateTime"))?;
        // Instants on the wire are whole seconds: it strikes in the second after.
        let at = since.checked_add(SignedDuration::from_secs(secs.saturating_add(1))).ok()?;
        (at > self.now).then_some(at)
    }

    /// A failure of the new set counts before those of old ones.
    pub(crate) fn note_replica_failure(&mut self) {
        let failure = |object: &'_ convoy_api::Object| object.condition(REPLICA_FAILURE).cloned();
        let of_new = self.new_set().and_then(|set| failure(set.object));
        let found = of_new.or_else(|| self.old().find_map(|set| failure(set.object)));
        let Some(found) = found else {
            condition::remove(&mut self.conditions, REPLICA_FAILURE);
            return;
        };
        let found = Some(&found);
        let (status, reason) = (word(found, "status"), word(found, "reason"));
        let before = find(&self.conditions, REPLICA_FAILURE);
        if word(before, "status") == status && word(before, "reason") == reason {
            return;
        }
        set(
            &mut self.conditions,
            REPLICA_FAILURE,
            status,
            reason,
            word(found, "message"),
            self.now,
        );
        let since = found.and_then(|entry| entry.get("lastTransitionTime")).cloned();
        if let (Some(since), Some(entry)) = (since, self.conditions.last_mut()) {
            entry["lastUpdateTime"] = since.clone();
            entry["lastTransitionTime"] = since;
        }
    }
}
