//! How many pods of a Job have succeeded and failed, each counted once.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::member::{field, list};
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::Value;

use super::number;
use crate::dialect::workloads::names::{COMPLETION_INDEX, JOB_TRACKING};
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
    /// Whether the status says all of this already.
    pub(crate) is_recorded: bool,
    is_indexed: bool,
    /// Pods that are terminating have failed once they are finished, not before.
    waits_for_terminating: bool,
}

impl<'o> Tally<'o> {
    pub(crate) fn new(
        owner: &'o Object,
        pods: &[&'o Object],
        is_indexed: bool,
        waits_for_terminating: bool,
    ) -> Self {
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
            is_recorded: false,
            is_indexed,
            waits_for_terminating,
        };
        let before = tally.record();
        tally.count();
        tally.is_recorded = tally.record() == before;
        tally
    }

    /// What the status says of it.
    fn record(&self) -> (i64, i64, BTreeSet<String>, BTreeSet<String>, Indexes) {
        let (succeeded, failed) = (&self.waiting_succeeded, &self.waiting_failed);
        let counted = (self.counted_succeeded, self.counted_failed);
        (counted.0, counted.1, succeeded.clone(), failed.clone(), self.completed.clone())
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
        for pod in self.pods.clone() {
            let Some(uid) = pod.uid().filter(|uid| held.contains(uid)) else { continue };
            let has_succeeded = pod.status_text("phase") == "Succeeded";
            if has_succeeded {
                self.waiting_succeeded.insert(uid.to_owned());
                if let Some(index) = index_of(pod).filter(|_| self.is_indexed) {
                    self.completed.insert(index);
                }
            } else if is_finished(pod) || self.counts_as_failed(pod) {
                self.waiting_failed.insert(uid.to_owned());
            }
        }
        let whole = |counted: i64, waiting: usize| usize::try_from(counted).unwrap_or(0) + waiting;
        self.succeeded = whole(self.counted_succeeded, self.waiting_succeeded.len());
        self.failed = whole(self.counted_failed, self.waiting_failed.len());
        if self.is_indexed {
            self.succeeded = self.completed.len();
        }
    }

    /// Whether a pod has failed because it is deleted. One without a node will never be finished.
    fn counts_as_failed(&self, pod: &Object) -> bool {
        pod.is_deleting() && !(self.waits_for_terminating && node_of(pod).is_some())
    }

    /// Whether the status says already how a pod ended.
    pub(crate) fn is_on_record(&self, pod: &Object) -> bool {
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
fn ended_at(pod: &Object) -> Option<Timestamp> {
    let containers = list(pod.status(), "containerStatuses").iter();
    let ends = containers.filter_map(|of| timestamp(of.pointer("/state/terminated/finishedAt")));
    ends.max().or_else(|| pod.created_at())
}

/// Which index a pod of an indexed Job has.
pub(crate) fn index_of(pod: &Object) -> Option<usize> {
    pod.annotation(COMPLETION_INDEX).or_else(|| pod.label(COMPLETION_INDEX))?.parse().ok()
}
