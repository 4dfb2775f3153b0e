//! A Job and its pods.
//!
//! Pods carry a finalizer until they are counted. A pod that is finished goes on record as not yet
//! counted, then loses the finalizer, then is counted: whatever is cut short in between, none is
//! forgotten and none is counted twice.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use convoy_api::apps::spec::JobSpec;
use convoy_api::object::member::{field, list, member, text};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::index_failures::{IndexFailures, index_of, last_failures};
use super::tally::{Counting, Tally};
use super::{Health, OwnedPods, Unreadable, health, template};
use crate::dialect::workloads::names::{
    COMPLETE, FAILED, FAILURE_TARGET, JOB_CONTROLLER, SUCCESS_CRITERIA_MET, SUSPENDED,
};
use crate::pods::is_finished;
use crate::snapshot::Snapshot;
use crate::text::indexes::Indexes;

/// How often pods may fail where the Job does not say.
const BACKOFF_LIMIT: i64 = 6;

/// The other controller that a Job is left to, if it names one.
pub(crate) fn other_controller(owner: &Object) -> Option<&str> {
    Some(owner.spec_text("managedBy")).filter(|name| !["", JOB_CONTROLLER].contains(name))
}

#[derive(Debug)]
pub(crate) struct Job<'o> {
    pub(crate) owner: &'o Object,
    pub(crate) now: Timestamp,
    pub(crate) pods: OwnedPods<'o>,
    /// Neither finished nor terminating.
    pub(crate) active: Vec<(&'o Object, Health)>,
    /// Terminating and not finished.
    pub(crate) terminating: usize,
    pub(crate) tally: Tally<'o>,
    pub(crate) parallelism: usize,
    /// None: one success is enough, and then no new pod is created.
    pub(crate) completions: Option<usize>,
    pub(crate) is_indexed: bool,
    pub(crate) is_suspended: bool,
    /// Pods that are terminating are replaced only once they are finished.
    pub(crate) waits_for_terminating: bool,
    pub(crate) backoff_limit: i64,
    pub(crate) max_failed_indexes: Option<i64>,
    /// Indexes that need no more pods: they have succeeded, or failed too often.
    pub(crate) settled: Indexes,
    /// The last failed pod of each index that waits for another, if failures are limited for each.
    pub(crate) last_failures: BTreeMap<usize, (IndexFailures, &'o Object)>,
    active_deadline_secs: Option<i64>,
    pub(crate) ttl_secs: Option<i64>,
    /// `status.startTime`.
    pub(crate) started_at: Option<Timestamp>,
}

impl<'o> Job<'o> {
    pub(crate) fn read(snapshot: &Snapshot<'o>, now: Timestamp) -> Result<Self, Unreadable> {
        let owner = snapshot.rollout();
        let spec: JobSpec = owner.spec_view()?;
        let pods = OwnedPods::read(snapshot)?;
        let whole = |given: Option<i64>| given.and_then(|count| usize::try_from(count).ok());
        let states = pods.all.iter().map(|pod| (*pod, health(pod, 0, now)));
        let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
        let has_failure_policy = !field(owner.spec(), "podFailurePolicy").is_null();
        let waits_for_terminating = match spec.pod_replacement_policy.as_deref() {
            Some(policy) => policy == "Failed",
            None => has_failure_policy,
        };
        let limit_per_index = spec.backoff_limit_per_index.filter(|_| is_indexed);
        let counting = Counting { is_indexed, waits_for_terminating, limit_per_index };
        let absent_limit = limit_per_index.map_or(BACKOFF_LIMIT, |_| i64::MAX);
        let last_failures = limit_per_index.map(|_| last_failures(owner, &pods.all));
        let tally = Tally::new(owner, &pods.all, counting);
        let is_leaving = |pod: &&&Object| pod.is_deleting() && !is_finished(pod);
        Ok(Self {
            owner,
            now,
            active: states.filter(|(_, health)| health.is_active()).collect(),
            terminating: pods.all.iter().filter(is_leaving).count(),
            settled: tally.settled_indexes(),
            tally,
            parallelism: whole(spec.parallelism).unwrap_or(1),
            completions: whole(spec.completions),
            is_indexed,
            is_suspended: spec.suspend.unwrap_or(false),
            waits_for_terminating,
            backoff_limit: spec.backoff_limit.unwrap_or(absent_limit),
            max_failed_indexes: spec.max_failed_indexes,
            last_failures: last_failures.unwrap_or_default(),
            active_deadline_secs: spec.active_deadline_seconds,
            ttl_secs: spec.ttl_seconds_after_finished,
            started_at: timestamp(owner.status_member("startTime")),
            pods,
        })
    }

    /// Whether it has ended.
    pub(crate) fn is_finished(&self) -> bool {
        [COMPLETE, FAILED].into_iter().any(|kind| self.has_condition(kind))
    }

    /// When it ended, if it has and says when.
    pub(crate) fn finished_at(&self) -> Option<Timestamp> {
        let kind = [COMPLETE, FAILED].into_iter().find(|kind| self.has_condition(kind))?;
        timestamp(member(self.owner.condition(kind)?, "lastTransitionTime"))
    }

    /// How it was announced to end: whether successfully, the reason and the message.
    pub(crate) fn announced_end(&self) -> Option<(bool, &str, &str)> {
        let kinds = [(SUCCESS_CRITERIA_MET, true), (FAILURE_TARGET, false)];
        kinds.into_iter().find_map(|(kind, is_success)| {
            let entry = self.owner.condition(kind).filter(|_| self.has_condition(kind))?;
            Some((is_success, text(entry, "reason"), text(entry, "message")))
        })
    }

    pub(crate) fn was_suspended(&self) -> bool {
        self.has_condition(SUSPENDED)
    }

    fn has_condition(&self, kind: &str) -> bool {
        self.owner.condition_status(kind) == Some("True")
    }

    pub(crate) fn conditions(&self) -> &'o [Value] {
        list(self.owner.status(), "conditions")
    }

    /// When its time is up, if it began then.
    pub(crate) fn deadline(&self, begun: Option<Timestamp>) -> Option<Timestamp> {
        let secs = SignedDuration::from_secs(self.active_deadline_secs?);
        begun?.checked_add(secs).ok()
    }

    /// How many pods take up a place: those at work, and those that have to be finished before
    /// they are replaced.
    pub(crate) fn occupied(&self) -> usize {
        self.active.len() + if self.waits_for_terminating { self.terminating } else { 0 }
    }

    /// How often containers of pods at work were started again, if failed ones are.
    pub(crate) fn restarts(&self) -> Option<i64> {
        let spec = field(template(self.owner), "spec");
        let containers = self.active.iter().flat_map(|(pod, _)| {
            let kinds = ["initContainerStatuses", "containerStatuses"];
            kinds.into_iter().flat_map(|kind| list(pod.status(), kind))
        });
        let restarts = containers.filter_map(|of| of.get("restartCount")?.as_i64());
        (text(spec, "restartPolicy") == "OnFailure").then(|| restarts.fold(0, i64::saturating_add))
    }

    /// How often the pods of an index have failed.
    pub(crate) fn failures_of(&self, index: usize) -> Option<IndexFailures> {
        let known = self.last_failures.get(&index).map(|(failures, _)| *failures);
        self.tally.failed_indexes.as_ref().map(|_| known.unwrap_or_default())
    }

    /// How many pods, or indexes, need no more pods.
    pub(crate) fn settled_count(&self) -> usize {
        if self.is_indexed { self.settled.len() } else { self.tally.succeeded }
    }

    /// Whether a failed pod tells how often its index was tried, and no other does.
    pub(crate) fn tells_of_its_index(&self, pod: &Object) -> bool {
        let index = index_of(pod).filter(|index| !self.settled.contains(*index));
        let last = index.and_then(|index| self.last_failures.get(&index));
        last.is_some_and(|(_, last)| last.key() == pod.key())
    }

    /// The indexes that are not settled and have no pod that takes up a place, the lowest first.
    pub(crate) fn free_indexes(&self) -> impl Iterator<Item = usize> {
        let stays = |pod: &&&Object| !pod.is_deleting() || self.waits_for_terminating;
        let taken: BTreeSet<usize> = self
            .pods
            .all
            .iter()
            .filter(|pod| pod.status_text("phase") != "Failed")
            .filter(stays)
            .filter_map(|pod| index_of(pod))
            .collect();
        let free = self.settled.free_below(self.completions.unwrap_or(0));
        free.filter(move |index| !taken.contains(index))
    }
}
