//! The status of a CronJob.

use convoy_api::Object;
use convoy_api::object::member::{list, text};
use serde_json::{Map, Value, json};

use crate::condition::instant;
use crate::dialect::workloads::decide::cron_job::CronJobDecision;
use crate::dialect::workloads::names::COMPLETE;
use crate::dialect::workloads::read::cron_job::CronJob;

/// The fields as they should read, once the step is carried out.
pub(crate) fn status(cron_job: &CronJob<'_>, decision: &CronJobDecision<'_>) -> Map<String, Value> {
    let replaced = |job: &Object| decision.replaced.iter().any(|(it, _)| it.key() == job.key());
    let known = list(cron_job.owner.status(), "active");
    let active: Vec<Value> = cron_job
        .active()
        .filter(|job| !replaced(job.object))
        .map(|job| entry(job.object, known))
        .collect();
    let scheduled = decision.due_at.filter(|_| decision.creation.count > 0);
    let complete = cron_job.jobs.iter().filter(|job| job.end == Some(COMPLETE));
    let successful = complete.filter_map(|job| job.completed_at).max();
    let mut status = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        status.insert(name.to_owned(), value.unwrap_or(Value::Null));
    };
    put("active", (!active.is_empty()).then_some(Value::Array(active)));
    put("lastScheduleTime", scheduled.max(cron_job.last_scheduled).map(|at| json!(instant(at))));
    put(
        "lastSuccessfulTime",
        successful.max(cron_job.last_successful).map(|at| json!(instant(at))),
    );
    status
}

/// The reference to a Job: the one that is stored, or a new one.
fn entry(job: &Object, known: &[Value]) -> Value {
    let stored = known.iter().find(|entry| text(entry, "uid") == job.uid().unwrap_or_default());
    stored.cloned().unwrap_or_else(|| {
        json!({"apiVersion": job.api_version(), "kind": job.kind().kind,
            "namespace": job.namespace(), "name": job.name(),
            "uid": job.uid().unwrap_or_default(),
            "resourceVersion": job.resource_version().unwrap_or_default()})
    })
}
