//! One decision about a CronJob: whether a Job is due, and which finished Jobs are kept. The limits
//! are listed in [`super`].

use std::cmp::Reverse;

use convoy_api::Object;
use jiff::Timestamp;

use crate::dialect::workloads::names::{COMPLETE, FAILED};
use crate::dialect::workloads::read::cron_job::{Concurrency, CronJob, ScheduledJob};
use crate::gate::{self, Grant, Limit, Permit};
use crate::hold::HoldReason;

/// What is done about a CronJob and its Jobs.
#[derive(Debug)]
pub(crate) struct CronJobDecision<'o> {
    /// The time of the Job that is due, if there is one.
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) creation: Grant,
    /// Jobs that make way for the one that is due.
    pub(crate) replaced: Vec<(&'o Object, Permit)>,
    /// Finished Jobs that are too many.
    pub(crate) expired: Vec<&'o Object>,
    /// When the next one is due.
    pub(crate) next_at: Option<Timestamp>,
}

pub(crate) fn decide<'o>(cron_job: &CronJob<'o>) -> CronJobDecision<'o> {
    let is_over = cron_job.owner.is_deleting();
    let due_at = cron_job.due_at().filter(|_| !is_over);
    let creation = gate::grant(u32::from(due_at.is_some()), &limits(cron_job));
    let replaces = creation.count > 0 && cron_job.concurrency == Concurrency::Replace;
    let replaced: Vec<&Object> =
        cron_job.active().filter(|_| replaces).map(|job| job.object).collect();
    // Whatever runs is in the way of a Job that replaces it: nothing limits that.
    let permit = gate::grant(crate::count(replaced.len()), &[]).permit();
    let replaced = replaced.into_iter().zip(permit.into_iter().cycle()).collect();
    let mut expired = too_many(cron_job, COMPLETE, cron_job.successful_kept);
    expired.extend(too_many(cron_job, FAILED, cron_job.failed_kept));
    if is_over {
        expired.clear();
    }
    let is_waiting = !is_over && !cron_job.is_suspended;
    let next_at = cron_job.schedule.next_after(cron_job.now).filter(|_| is_waiting);
    CronJobDecision { due_at, creation, replaced, expired, next_at }
}

fn limits(cron_job: &CronJob<'_>) -> Vec<Limit> {
    let suspension = cron_job.is_suspended.then(|| Limit::closed(HoldReason::Paused));
    let forbids = cron_job.concurrency == Concurrency::Forbid;
    let active = || cron_job.active().map(|job| job.object.name().clone());
    let alone = forbids.then(|| {
        let running = crate::count(active().count());
        Limit::slots("concurrencyPolicy", running, 1, active())
    });
    suspension.into_iter().chain(alone).collect()
}

/// The Jobs that ended like this beyond the `kept` that started last.
fn too_many<'o>(cron_job: &CronJob<'o>, end: &str, kept: usize) -> Vec<&'o Object> {
    let ended = cron_job.jobs.iter().filter(|job| job.end == Some(end));
    let mut ended: Vec<&ScheduledJob<'o>> = ended.filter(|job| !job.object.is_deleting()).collect();
    ended.sort_by_key(|job| Reverse((job.started_at, job.object.name())));
    ended.into_iter().skip(kept).map(|job| job.object).collect()
}
