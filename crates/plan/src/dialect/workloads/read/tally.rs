//! How many pods of a Job have succeeded and failed, each counted once.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::member::{field, list};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::Value;

use super::index_failures::{IndexFailures, index_of};
use super::number;
use super::pod_failure::{Consequence, PodFailurePolicy};
use crate::dialect::workloads::names::JOB_TRACKING;
use crate::pods::{is_finished, node_of};
use crate::text::indexes::Indexes;

/// The count, as it stands after this step.
#[derive(Debug)]
pub(crate) struct Tally<'o> {
    owner: &'o Object,
    pods: Vec<&'o Object>,
    /// Counted ones and those on record.
    pub(crate) succeeded: usize,
    pub(crate) failed: usize,
    pub(crate) counted_succeeded: i64,
    pub(crate) counted_failed: i64,
    /// On record and not counted yet, by uid.
    pub(crate) waiting_succeeded: BTreeSet<String>,
    pub(crate) waiting_failed: BTreeSet<String>,
    pub(crate) completed: Indexes,
    /// Indexes that are not tried again; none if pods are not limited for each index.
    pub(crate) failed_indexes: Option<Indexes>,
    /// Why the policy says that the Job has failed.
    pub(crate) job_failure: Option<String>,
    /// Pods whose failure is not counted, by uid.
    ignored: BTreeSet<String>,
    /// Whether the status says all of this already.
    pub(crate) is_recorded: bool,
    rules: Counting,
}

/// The part of a count that the status keeps.
#[derive(PartialEq)]
struct Record {
    counted: [i64; 2],
    waiting: [BTreeSet<String>; 2],
    completed: Indexes,
    failed_indexes: Option<Indexes>,
}

/// How pods are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    pub(crate) is_indexed: bool,
    /// Pods that are terminating have failed once they are finished, not before.
    pub(crate) waits_for_terminating: bool,
    /// How often the pods of one index may fail.
    pub(crate) limit_per_index: Option<i64>,
}

impl<'o> Tally<'o> {
    pub(crate) fn new(owner: &'o Object, pods: &[&'o Object], rules: Counting) -> Self {
        let status = owner.status();
        let stored = |name: &str| -> BTreeSet<String> {
            let uids = list(field(status, "uncountedTerminatedPods"), name).iter();
            uids.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut tally = Self {
            owner,
            pods: pods.to_vec(),
            succeeded: 0,
            failed: 0,
            counted_succeeded: number(status, "succeeded").unwrap_or(0),
            counted_failed: number(status, "failed").unwrap_or(0),
            waiting_succeeded: stored("succeeded"),
            waiting_failed: stored("failed"),
            completed: Indexes::read(owner.status_text("completedIndexes")),
            failed_indexes: rules
                .limit_per_index
                .map(|_| Indexes::read(owner.status_text("failedIndexes"))),
            job_failure: None,
            ignored: BTreeSet::new(),
            is_recorded: false,
            rules,
        };
        let before = tally.record();
        tally.count();
        tally.is_recorded = tally.record() == before;
        tally
    }

    /// What the status says of it.
    fn record(&self) -> Record {
        Record {
            counted: [self.counted_succeeded, self.counted_failed],
            waiting: [self.waiting_succeeded.clone(), self.waiting_failed.clone()],
            completed: self.completed.clone(),
            failed_indexes: self.failed_indexes.clone(),
        }
    }

    fn count(&mut self) {
        let held: BTreeSet<&str> = self
            .pods
            .iter()
            .filter(|pod| pod.has_finalizer(JOB_TRACKING))
            .filter_map(|pod| pod.uid())
            .collect();
        // On record, and the finalizer is off: counted now.
        let before = (self.waiting_succeeded.len(), self.waiting_failed.len());
        self.waiting_succeeded.retain(|uid| held.contains(uid.as_str()));
        self.waiting_failed.retain(|uid| held.contains(uid.as_str()));
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.counted_succeeded += number(before.0 - self.waiting_succeeded.len());
        self.counted_failed += number(before.1 - self.waiting_failed.len());
        let policy = PodFailurePolicy::read(self.owner);
        for pod in self.pods.clone() {
            let Some(uid) = pod.uid().filter(|uid| held.contains(uid)) else { continue };
            let has_succeeded = pod.status_text("phase") == "Succeeded";
            if has_succeeded {
                self.waiting_succeeded.insert(uid.to_owned());
                if let Some(index) = index_of(pod).filter(|_| self.rules.is_indexed) {
                    self.completed.insert(index);
                }
            } else if is_finished(pod) || self.counts_as_failed(pod) {
                self.fail(&policy, pod, uid);
            }
        }
        let whole = |counted: i64, waiting: usize| usize::try_from(counted).unwrap_or(0) + waiting;
        self.succeeded = whole(self.counted_succeeded, self.waiting_succeeded.len());
        self.failed = whole(self.counted_failed, self.waiting_failed.len());
        if self.rules.is_indexed {
            self.succeeded = self.completed.len();
        }
    }

    /// Puts a failed pod on record, unless the policy says otherwise.
    fn fail(&mut self, policy: &PodFailurePolicy, pod: &Object, uid: &str) {
        let found = policy.consequence(pod);
        let is = |wanted| matches!(&found, Some((consequence, _)) if *consequence == wanted);
        if is(Consequence::Ignore) {
            self.ignored.insert(uid.to_owned());
            return;
        }
        self.waiting_failed.insert(uid.to_owned());
        let is_last = IndexFailures::before(pod).counted >= self.rules.limit_per_index.unwrap_or(0);
        if let Some((failed, index)) = self.failed_indexes.as_mut().zip(index_of(pod))
            && (is_last || is(Consequence::FailIndex))
        {
            failed.insert(index);
        }
        if is(Consequence::FailJob) && self.job_failure.is_none() {
            self.job_failure = found.map(|(_, message)| message);
        }
    }

    /// Indexes that have succeeded, or failed too often.
    pub(crate) fn settled_indexes(&self) -> Indexes {
        let failed = self.failed_indexes.as_ref();
        failed.map_or_else(|| self.completed.clone(), |failed| self.completed.union(failed))
    }

    /// Whether a pod has failed because it is deleted. One without a node will never be finished.
    fn counts_as_failed(&self, pod: &Object) -> bool {
        pod.is_deleting() && !(self.rules.waits_for_terminating && node_of(pod).is_some())
    }

    /// Whether a pod may go: the status says already how it ended, or nobody has to know.
    pub(crate) fn may_go(&self, pod: &Object) -> bool {
        if pod.uid().is_some_and(|uid| self.ignored.contains(uid)) {
            return true;
        }
        let stored = field(self.owner.status(), "uncountedTerminatedPods");
        let mut uids = list(stored, "succeeded").iter().chain(list(stored, "failed"));
        uids.any(|uid| uid.as_str() == pod.uid())
    }

    /// Whether every pod that is over is counted.
    pub(crate) fn is_settled(&self) -> bool {
        self.waiting_succeeded.is_empty() && self.waiting_failed.is_empty()
    }

    /// How many pods failed since the last that succeeded, and when the last of them did.
    pub(crate) fn failures_in_a_row(&self) -> Option<(usize, Timestamp)> {
        let ended = |phase: &str| -> Vec<Timestamp> {
            let pods = self.pods.iter().filter(|pod| pod.status_text("phase") == phase);
            pods.filter_map(|pod| ended_at(pod)).collect()
        };
        let success = ended("Succeeded").into_iter().max();
        let failures: Vec<Timestamp> = ended("Failed")
            .into_iter()
            .filter(|at| success.is_none_or(|success| *at > success))
            .collect();
        Some((failures.len(), failures.into_iter().max()?))
    }
}

/// When the last container of a pod ended; where nothing tells, when it was made.
pub(crate) fn ended_at(pod: &Object) -> Option<Timestamp> {
    let containers = list(pod.status(), "containerStatuses").iter();
    let ends = containers.filter_map(|of| timestamp(of.pointer("/state/terminated/finishedAt")));
    ends.max().or_else(|| pod.created_at())
}
