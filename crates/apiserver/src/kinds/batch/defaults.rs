//! Defaults of jobs and of the schedules that make them.

use serde_json::{Value, json};

use crate::kinds::fill::{self, Fields};
use crate::kinds::pod::defaults::template_in;
use crate::kinds::workload::defaults::adopt_labels;

/// The largest `int32`: no limit.
const UNLIMITED: i64 = i32::MAX as i64;

pub(super) fn job(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    job_spec(spec);
    let labels = spec["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        adopt_labels(object, labels);
    }
}

pub(super) fn cron_job(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::text(spec, "concurrencyPolicy", "Allow");
    fill::absent(spec, "suspend", || json!(false));
    fill::absent(spec, "successfulJobsHistoryLimit", || json!(3));
    fill::absent(spec, "failedJobsHistoryLimit", || json!(1));
    // The embedded job gets its own defaults when it becomes one; its pods have theirs now.
    if let Some(job) = fill::make(spec, "jobTemplate").and_then(|job| fill::make(job, "spec")) {
        failure_patterns(job);
        template_in(job);
    }
}

fn job_spec(spec: &mut Fields) {
    let is_absent = |spec: &Fields, key: &str| spec.get(key).is_none_or(Value::is_null);
    if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
        spec.insert("completions".into(), json!(1));
    }
    fill::absent(spec, "parallelism", || json!(1));
    let limit = if is_absent(spec, "backoffLimitPerIndex") { 6 } else { UNLIMITED };
    fill::absent(spec, "backoffLimit", || json!(limit));
    fill::absent(spec, "completionMode", || json!("NonIndexed"));
    fill::absent(spec, "suspend", || json!(false));
    let replaces =
        if is_absent(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    fill::absent(spec, "podReplacementPolicy", || json!(replaces));
    fill::absent(spec, "manualSelector", || json!(false));
    failure_patterns(spec);
    template_in(spec);
}

fn failure_patterns(spec: &mut Fields) {
    let Some(policy) = fill::fields(spec.get_mut("podFailurePolicy")) else { return };
    fill::each(policy.get_mut("rules"), |rule| {
        fill::each(rule.get_mut("onPodConditions"), |pattern| {
            fill::text(pattern, "status", "True");
        });
    });
}
