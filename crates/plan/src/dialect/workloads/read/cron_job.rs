//! A CronJob and its Jobs.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::apps::spec::CronJobSpec;
use convoy_api::kinds::JOB;
use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Unreadable;
use crate::cron::{Cron, zone};
use crate::dialect::workloads::names::{COMPLETE, FAILED, SCHEDULED_TIMESTAMP};
use crate::ownership::is_controlled_by;
use crate::snapshot::Snapshot;

/// Finished Jobs that are kept where the CronJob does not say.
const SUCCESSFUL_KEPT: i64 = 3;
const FAILED_KEPT: i64 = 1;

#[derive(Debug)]
pub(crate) struct CronJob<'o> {
    pub(crate) owner: &'o Object,
    pub(crate) now: Timestamp,
    pub(crate) schedule: Cron,
    pub(crate) zone: TimeZone,
    pub(crate) concurrency: Concurrency,
    pub(crate) is_suspended: bool,
    /// How late a Job may start.
    pub(crate) deadline: Option<SignedDuration>,
    /// By name: the Jobs that it made.
    pub(crate) jobs: Vec<ScheduledJob<'o>>,
    /// The names in `status.active`.
    pub(crate) recorded: BTreeSet<&'o str>,
    /// The last time that a Job was made for.
    pub(crate) last_scheduled: Option<Timestamp>,
    /// `status.lastSuccessfulTime`.
    pub(crate) last_successful: Option<Timestamp>,
    pub(crate) successful_kept: usize,
    pub(crate) failed_kept: usize,
}

/// What happens to a Job that is due while another one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concurrency {
    Allow,
    Forbid,
    Replace,
}

/// A Job of a CronJob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduledJob<'o> {
    pub(crate) object: &'o Object,
    /// How it ended: [`COMPLETE`] or [`FAILED`].
    pub(crate) end: Option<&'static str>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) completed_at: Option<Timestamp>,
}

impl<'o> CronJob<'o> {
    pub(crate) fn read(snapshot: &Snapshot<'o>, now: Timestamp) -> Result<Self, Unreadable> {
        let owner = snapshot.rollout();
        let spec: CronJobSpec = owner.spec_view()?;
        let zone = match spec.time_zone.as_deref() {
            None | Some("") => TimeZone::UTC,
            Some(name) => zone(name).map_err(|_| Unreadable::new("spec.timeZone"))?,
        };
        let schedule = spec.schedule.unwrap_or_default();
        let schedule = if spec.time_zone.is_some() {
            Cron::parse_in(&schedule, zone.clone())
        } else {
            Cron::parse(&schedule)
        };
        let kept =
            |given: Option<i64>, usual| usize::try_from(given.unwrap_or(usual)).unwrap_or_default();
        let own = snapshot.of(&JOB).iter().filter(|job| is_controlled_by(job, owner));
        let jobs: Vec<ScheduledJob<'o>> = own.map(|job| ScheduledJob::read(job)).collect();
        let recorded = list(owner.status(), "active").iter().map(|entry| text(entry, "name"));
        let noted = timestamp(owner.status_member("lastScheduleTime"));
        Ok(Self {
            owner,
            now,
            schedule: schedule.map_err(|_| Unreadable::new("spec.schedule"))?,
            zone,
            concurrency: Concurrency::read(spec.concurrency_policy.as_deref())?,
            is_suspended: spec.suspend.unwrap_or(false),
            deadline: spec.starting_deadline_seconds.map(SignedDuration::from_secs),
            last_scheduled: jobs.iter().map(ScheduledJob::due_at).max().flatten().max(noted),
            last_successful: timestamp(owner.status_member("lastSuccessfulTime")),
            recorded: recorded.collect(),
            successful_kept: kept(spec.successful_jobs_history_limit, SUCCESSFUL_KEPT),
            failed_kept: kept(spec.failed_jobs_history_limit, FAILED_KEPT),
            jobs,
        })
    }

    /// Jobs that have not ended, and are not being deleted.
    pub(crate) fn active(&self) -> impl Iterator<Item = &ScheduledJob<'o>> {
        self.jobs.iter().filter(|job| job.is_active())
    }

    /// When a Job was due last that was not made, if one was since the last that was made.
    pub(crate) fn due_at(&self) -> Option<Timestamp> {
        let since = self.last_scheduled.or(self.owner.created_at())?;
        let latest = self.deadline.and_then(|deadline| self.now.checked_sub(deadline).ok());
        // A Job that is due and a deadline that ends in the same second: the Job is in time.
        let latest = latest.and_then(|at| at.checked_sub(SignedDuration::from_secs(1)).ok());
        let since = latest.map_or(since, |latest| latest.max(since));
        self.schedule.last_within(since, self.now)
    }
}

impl<'o> ScheduledJob<'o> {
    fn read(object: &'o Object) -> Self {
        let has = |kind: &&str| object.condition_status(kind) == Some("True");
        Self {
            object,
            end: [COMPLETE, FAILED].into_iter().find(has),
            started_at: timestamp(object.status_member("startTime")),
            completed_at: timestamp(object.status_member("completionTime")),
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.end.is_none() && !self.object.is_deleting()
    }

    /// The time that it was made for, if it was made by the clock.
    fn due_at(&self) -> Option<Timestamp> {
        self.object.annotation(SCHEDULED_TIMESTAMP)?.parse().ok()
    }
}

impl Concurrency {
    fn read(given: Option<&str>) -> Result<Self, Unreadable> {
        match given {
            None | Some("" | "Allow") => Ok(Self::Allow),
            Some("Forbid") => Ok(Self::Forbid),
            Some("Replace") => Ok(Self::Replace),
            Some(_) => Err(Unreadable::new("spec.concurrencyPolicy")),
        }
    }
}

/// The template of its Jobs.
pub(crate) fn job_template(owner: &Object) -> &Value {
    field(owner.spec(), "jobTemplate")
}
