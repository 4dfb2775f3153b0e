//! Controllers of pods.

use serde_json::{Value, json};

use super::pod::template_in;
use super::storage;
use crate::kinds::fill::{self, Fields};

/// The largest `int32`: no limit.
const UNLIMITED: i64 = i32::MAX as i64;

/// A template is never absent, though it may be empty.
pub(in crate::kinds) fn make_template(object: &mut Value) {
    let template = fill::spec(object).and_then(|spec| fill::make(spec, "template"));
    if let Some(template) = template {
        fill::make(template, "spec");
    }
}

pub(in crate::kinds) fn daemon_set(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    if let Some(strategy) = fill::make(spec, "updateStrategy") {
        fill::text(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = fill::make(strategy, "rollingUpdate")
        {
            fill::absent(rolling, "maxUnavailable", || json!(1));
            fill::absent(rolling, "maxSurge", || json!(0));
        }
    }
    fill::absent(spec, "revisionHistoryLimit", || json!(10));
    template_in(spec);
}

pub(in crate::kinds) fn stateful_set(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::text(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = fill::make(spec, "updateStrategy") {
        if fill::given(strategy, "type").is_empty() {
            fill::text(strategy, "type", "RollingUpdate");
            fill::make(strategy, "rollingUpdate");
        }
        if strategy["type"] == "RollingUpdate"
            && let Some(rolling) = fill::fields(strategy.get_mut("rollingUpdate"))
        {
            fill::absent(rolling, "partition", || json!(0));
        }
    }
    if let Some(policy) = fill::make(spec, "persistentVolumeClaimRetentionPolicy") {
        fill::text(policy, "whenDeleted", "Retain");
        fill::text(policy, "whenScaled", "Retain");
    }
    fill::absent(spec, "replicas", || json!(1));
    fill::absent(spec, "revisionHistoryLimit", || json!(10));
    template_in(spec);
    fill::each(spec.get_mut("volumeClaimTemplates"), |claim| {
        // Whatever it says, a template of claims is one.
        claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
        claim.insert("apiVersion".to_owned(), json!("v1"));
        storage::claim(claim);
    });
}

/// Selector and labels come from the template where they are not given.
pub(in crate::kinds) fn replication_controller(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    fill::absent(spec, "replicas", || json!(1));
    let labels = spec.get("template").map(|template| template["metadata"]["labels"].clone());
    if spec.get("template").is_some_and(Value::is_object) {
        template_in(spec);
    }
    let Some(labels) = labels.filter(Value::is_object) else { return };
    if is_empty_map(spec, "selector") {
        spec.insert("selector".into(), labels.clone());
    }
    adopt_labels(object, labels);
}

pub(in crate::kinds) fn job(object: &mut Value) {
    let Some(spec) = fill::spec(object) else { return };
    job_spec(spec);
    let labels = spec["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        adopt_labels(object, labels);
    }
}

pub(in crate::kinds) fn cron_job(object: &mut Value) {
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

/// An object without labels takes those of its pods.
fn adopt_labels(object: &mut Value, labels: Value) {
    let metadata = crate::metadata::of(object);
    if is_empty_map(metadata, "labels") {
        metadata.insert("labels".into(), labels);
    }
}

fn is_empty_map(map: &Fields, key: &str) -> bool {
    map.get(key).and_then(Value::as_object).is_none_or(Fields::is_empty)
}
