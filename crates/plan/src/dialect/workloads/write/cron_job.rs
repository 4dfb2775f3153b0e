//! Actions of a CronJob, and the bodies of its Jobs.

use convoy_api::kinds::JOB;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::note;
use crate::dialect::workloads::decide::cron_job::CronJobDecision;
use crate::dialect::workloads::names::SCHEDULED_TIMESTAMP;
use crate::dialect::workloads::read::cron_job::{CronJob, job_template};
use crate::gate::Permit;
use crate::pods::from_template;
use crate::pods::writes::Writes;
use crate::step::{Action, EventType, Propagation, Verb, Why};

pub(crate) fn writes<'o>(cron_job: &CronJob<'o>, decision: &CronJobDecision<'_>) -> Writes<'o> {
    let mut writes = Writes::new(cron_job.owner);
    tell_ends(&mut writes, cron_job);
    for job in &decision.expired {
        let message = "more Jobs have ended than the history of the CronJob keeps";
        writes.actions.push(
            Action::delete(
                Verb::Delete,
                job,
                Propagation::Background,
                Why::new("HistoryLimit", message),
            )
            .concurrently(),
        );
        writes.tell_of(job.key(), "SuccessfulDelete", format!("Deleted job {}", job.name()));
    }
    for (job, permit) in &decision.replaced {
        let why = Why::new("Replaced", "concurrencyPolicy is Replace, and the next Job is due");
        let verb = Verb::Remove(*permit);
        writes.actions.push(Action::delete(verb, job, Propagation::Background, why));
        writes.tell_of(job.key(), "SuccessfulDelete", format!("Deleted job {}", job.name()));
    }
    if let Some((due_at, permit)) = decision.due_at.zip(decision.creation.permit()) {
        create(&mut writes, cron_job, due_at, permit);
    }
    writes
}

/// The Job is named after the minute that it was due, so that it is made once, whoever tries.
fn create(writes: &mut Writes<'_>, cron_job: &CronJob<'_>, due_at: Timestamp, permit: Permit) {
    let owner = cron_job.owner;
    let name = format!("{}-{}", owner.name(), due_at.as_second() / 60);
    let key = owner.key().sibling(&JOB, owner.namespace(), &name);
    let mut job = from_template(owner, owner.api_version(), job_template(owner), &key);
    note(&mut job, "annotations", SCHEDULED_TIMESTAMP, &in_zone(due_at, &cron_job.zone));
    let message = format!("{due_at} was due by the schedule");
    writes.tell_of(&key, "SuccessfulCreate", format!("Created job {name}"));
    let start = Action::create(Verb::Start(permit), key, job, Why::new("Due", message));
    writes.actions.push(start);
}

/// A time as RFC 3339 has it, with the offset of the zone.
fn in_zone(at: Timestamp, zone: &TimeZone) -> String {
    if *zone == TimeZone::UTC {
        return at.to_string();
    }
    at.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Tells of Jobs on record that have ended, or are gone.
fn tell_ends(writes: &mut Writes<'_>, cron_job: &CronJob<'_>) {
    for name in &cron_job.recorded {
        let job = cron_job.jobs.iter().find(|job| job.object.name() == name);
        match job.map(|job| job.end) {
            Some(Some(end)) => {
                let message = format!("Saw completed job: {name}, condition: {end}");
                writes.tell(EventType::Normal, "SawCompletedJob", message);
            }
            Some(None) => {}
            None => {
                let message = format!("Active job went missing: {name}");
                writes.tell(EventType::Normal, "MissingJob", message);
            }
        }
    }
}
