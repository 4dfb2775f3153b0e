//! One decision about a Job: as many pods at a time as it says, until enough have succeeded. The
//! limits are listed in [`super`].

use std::collections::BTreeMap;

use convoy_api::Object;
use jiff::{SignedDuration, Timestamp};

use super::job_end::JobEnd;
use crate::dialect::workloads::read::Health;
use crate::dialect::workloads::read::job::Job;
use crate::dialect::workloads::read::tally::ended_at;
use crate::gate::{self, Candidate, Grant, Limit, Permit};
use crate::hold::HoldReason;
use crate::pods::is_finished;

/// The most pods that one step creates.
const BURST: u32 = 500;

/// How long the next pod waits after the first failure; twice as long after each further one.
const BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const BACKOFF_MAX: SignedDuration = SignedDuration::from_mins(10);

/// What is done about a Job and its pods.
#[derive(Debug)]
pub(crate) struct JobDecision<'o> {
    /// When a finished Job is deleted; none if it is kept or still runs.
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) end: Option<JobEnd>,
    pub(crate) removals: Vec<(&'o Object, Permit)>,
    pub(crate) creation: Grant,
    /// The indexes of the pods that are created; none for pods without one.
    pub(crate) indexes: Vec<Option<usize>>,
    /// Until when failures keep the next pod waiting.
    pub(crate) backs_off_until: Option<Timestamp>,
    /// The same for single indexes, where failures are limited for each, and what each is told.
    pub(crate) index_holds: Vec<(usize, HoldReason, Timestamp)>,
}

pub(crate) fn decide<'o>(job: &Job<'o>) -> JobDecision<'o> {
    let is_over = job.is_finished() || job.owner.is_deleting();
    let end = if is_over { None } else { JobEnd::of(job) };
    let running = job.active.len();
    let is_ending = is_over || end.is_some();
    let total = if is_ending { running } else { total(job) };
    let index_back_offs = if is_ending { BTreeMap::new() } else { index_back_offs(job) };
    let backs_off_until = backs_off(job);
    let index_holds = index_holds(job, &index_back_offs);
    let waiting = job.occupied() + index_holds.len();
    let needed = crate::count(total.saturating_sub(waiting));
    let creation = gate::grant(needed, &creation_limits(job, backs_off_until));
    let stops = end.is_some() || job.is_suspended;
    let allowed = if stops { 0 } else { total.min(job.parallelism) };
    let excess = if is_over { 0 } else { running.saturating_sub(allowed) };
    let count = usize::try_from(creation.count).unwrap_or(usize::MAX);
    let indexes = if job.is_indexed {
        let free = job.free_indexes().filter(|index| !index_back_offs.contains_key(index));
        free.take(count).map(Some).collect()
    } else {
        vec![None; count]
    };
    let expires_at = job
        .finished_at()
        .zip(job.ttl_secs)
        .and_then(|(since, secs)| since.checked_add(SignedDuration::from_secs(secs)).ok());
    let removals = removals(job, excess);
    JobDecision { expires_at, end, removals, creation, indexes, backs_off_until, index_holds }
}

/// How many pods may run in all that follows, whatever the parallelism.
fn total(job: &Job<'_>) -> usize {
    match job.completions {
        None if job.tally.succeeded > 0 => job.active.len(),
        None => job.parallelism,
        Some(completions) => completions.saturating_sub(job.settled_count()),
    }
}

/// A create that is denied ends the step, and the status is written last: pods that are over wait
/// for the record before they are let go, so the record comes first.
fn creation_limits(job: &Job<'_>, backs_off_until: Option<Timestamp>) -> Vec<Limit> {
    let suspension = job.is_suspended.then(|| Limit::closed(HoldReason::Paused));
    let record = (!job.tally.is_recorded).then(|| {
        let on = "its status to record how its pods ended".to_owned();
        Limit::closed(HoldReason::Depends { on })
    });
    let running = job.active.iter().map(|(pod, _)| pod.name().clone());
    let (in_flight, ceiling) = (crate::count(job.occupied()), crate::count(job.parallelism));
    let parallelism = Limit::slots("parallelism", in_flight, ceiling, running);
    let backoff = backs_off_until.map(|_| {
        let failed = job.tally.failed;
        let noun = if failed == 1 { "pod" } else { "pods" };
        Limit::closed(HoldReason::Failed { detail: format!("{failed} {noun} failed") })
    });
    let first = suspension.into_iter().chain(record).chain([parallelism]);
    first.chain(backoff).chain([Limit::burst(BURST, 0)]).collect()
}

/// When the next pod may be created, if failures keep it waiting.
fn backs_off(job: &Job<'_>) -> Option<Timestamp> {
    if job.tally.failed_indexes.is_some() {
        return None;
    }
    let (failures, last) = job.tally.failures_in_a_row()?;
    waits_until(job, failures, last)
}

/// When indexes may be tried again, of those that failures keep waiting.
fn index_back_offs(job: &Job<'_>) -> BTreeMap<usize, Timestamp> {
    // One that has to be finished first takes up a place already.
    let is_over = |pod: &Object| is_finished(pod) || !job.waits_for_terminating;
    let failures = job.last_failures.iter();
    let failures = failures.filter(|(_, (_, pod))| is_over(pod) && job.tells_of_its_index(pod));
    let waits = failures.filter_map(|(index, (failures, pod))| {
        let times = usize::try_from(failures.total()).unwrap_or(usize::MAX);
        Some((*index, waits_until(job, times, ended_at(pod)?)?))
    });
    waits.collect()
}

/// An index that backs off has an obstacle of its own: it takes no room from the others.
fn index_holds(
    job: &Job<'_>,
    back_offs: &BTreeMap<usize, Timestamp>,
) -> Vec<(usize, HoldReason, Timestamp)> {
    let obstacle = |index: usize| {
        let failures = job.failures_of(index).unwrap_or_default().total();
        let noun = if failures == 1 { "pod" } else { "pods" };
        HoldReason::Failed { detail: format!("{failures} {noun} failed") }
    };
    let candidates = back_offs.keys().map(|index| Candidate::blocked("", *index, obstacle(*index)));
    let admission = gate::admit(candidates.collect(), &[]);
    let holds = admission.holds.into_iter();
    holds.map(|(member, reason)| (member.index, reason, back_offs[&member.index])).collect()
}

fn waits_until(job: &Job<'_>, failures: usize, last: Timestamp) -> Option<Timestamp> {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    let wait = BACKOFF.saturating_mul(1 << doublings).min(BACKOFF_MAX);
    last.checked_add(wait).ok().filter(|until| *until > job.now)
}

/// Pods that are no longer wanted: those that have come least far go first, and nothing limits
/// how many.
fn removals<'o>(job: &Job<'o>, excess: usize) -> Vec<(&'o Object, Permit)> {
    let mut going: Vec<&(&Object, Health)> = job.active.iter().collect();
    going.sort_by_key(|(pod, health)| {
        (health.is_ready(), std::cmp::Reverse(pod.created_at()), pod.name())
    });
    let candidates = going.iter().enumerate().take(excess);
    let candidates = candidates.map(|(at, (pod, _))| Candidate::free(pod.name(), at)).collect();
    let admission = gate::admit(candidates, &[]);
    let Some(permit) = admission.permit() else { return Vec::new() };
    admission.starts.iter().map(|member| (going[member.index].0, permit)).collect()
}
