//! Jobs and schedules in tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::column::Cell::{Count, Made, Selector, Text};
use crate::column::{AGE, Column, NAME, Row, condition, duration, integer, string, wide};
use crate::kinds::workload::columns::{containers, images};

const JOB_PODS: &str = "/spec/template/spec/containers";
const CRON_JOB_PODS: &str = "/spec/jobTemplate/spec/template/spec/containers";

pub(super) const JOB: &[Column] = &[
    NAME,
    string("Status", Made(status)),
    string("Completions", Made(completions)),
    string("Duration", Made(run_time)),
    AGE,
    containers(JOB_PODS),
    images(JOB_PODS),
    wide("Selector", Selector("/spec/selector", "<none>")),
];

pub(super) const CRON_JOB: &[Column] = &[
    NAME,
    string("Schedule", Text("/spec/schedule", "")),
    string("Timezone", Text("/spec/timeZone", "<none>")),
    Column { name: "Suspend", of: "boolean", format: "", is_wide: false, cell: Made(suspended) },
    integer("Active", Count(&["/status/active"])),
    string("Last Schedule", Made(last_schedule)),
    AGE,
    containers(CRON_JOB_PODS),
    images(CRON_JOB_PODS),
    wide("Selector", Selector("/spec/jobTemplate/spec/selector", "<none>")),
];

fn status(row: &Row<'_>) -> Value {
    let conditions = &row.object["status"]["conditions"];
    let is = |of: &str| condition(conditions, of).is_some_and(|one| one["status"] == "True");
    json!(if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if row.is_deleting() {
        "Terminating"
    } else {
        let others = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        others.into_iter().find(|of| is(of)).unwrap_or("Running")
    })
}

fn completions(row: &Row<'_>) -> Value {
    let done = row.number("/status/succeeded");
    let parallel = row.number("/spec/parallelism");
    json!(match row.object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallel > 1 => format!("{done}/1 of {parallel}"),
        None => format!("{done}/1"),
    })
}

fn run_time(row: &Row<'_>) -> Value {
    let time = |pointer| row.text(pointer).parse::<Timestamp>().ok();
    let Some(start) = time("/status/startTime") else {
        return json!("");
    };
    let end = time("/status/completionTime").unwrap_or(row.now);
    json!(duration(end.duration_since(start).as_secs()))
}

fn suspended(row: &Row<'_>) -> Value {
    json!(match row.object["spec"]["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    })
}

fn last_schedule(row: &Row<'_>) -> Value {
    let pointer = "/status/lastScheduleTime";
    json!(if row.text(pointer).is_empty() { "<none>".to_owned() } else { row.age(pointer) })
}
