//! A decision about a CronJob as a [`Step`]. Its members are the Jobs that run.

use jiff::Timestamp;
use serde_json::json;

use super::Members;
use crate::dialect::workloads::decide::cron_job::decide;
use crate::dialect::workloads::read::Unreadable;
use crate::dialect::workloads::read::cron_job::CronJob;
use crate::dialect::workloads::status::cron_job::status;
use crate::dialect::workloads::write::cron_job::writes;
use crate::hold::HoldReason;
use crate::snapshot::Snapshot;
use crate::step::{MemberState, Step, Verdict};

pub(crate) fn step(
    dialect: &'static str,
    snapshot: &Snapshot<'_>,
    now: Timestamp,
) -> Result<Step, Unreadable> {
    let cron_job = CronJob::read(snapshot, now)?;
    let decision = decide(&cron_job);
    let mut members = Members::new(cron_job.owner);
    for job in cron_job.active() {
        let is_replaced = decision.replaced.iter().any(|(it, _)| it.key() == job.object.key());
        if is_replaced {
            members.group.count(MemberState::Gone);
            continue;
        }
        let reason = HoldReason::NotAvailable { detail: "it runs".to_owned() };
        members.add(job.object.name().clone(), MemberState::Moving, Some(reason), None);
    }
    members.group.count_many(MemberState::Moving, decision.creation.count);
    members.wake_at = decision.next_at;
    if cron_job.is_suspended {
        members.hold(HoldReason::Paused);
    } else if let Some(reason) = decision.creation.hold.clone() {
        members.hold(reason);
    }
    let summary = json!({"active": cron_job.active().count(),
        "next": decision.next_at.map(|at| at.to_string())});
    let (writes, fields) = (writes(&cron_job, &decision), status(&cron_job, &decision));
    let mut step = members.step(dialect, writes, cron_job.owner, fields, summary);
    if cron_job.is_suspended && step.verdict == Verdict::Done {
        step.verdict = Verdict::Paused;
    }
    Ok(step)
}
