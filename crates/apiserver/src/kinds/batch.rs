//! Jobs and the schedules that make them.

mod columns;
mod defaults;

use convoy_api::text::Name;
use convoy_api::well_known::label::JOB_UID;
use convoy_plan::cron::{self, Cron};
use serde_json::{Map, Value, json};

use super::at::{At, Errors, same};
use super::kind::{Change, Dependents, Kind};
use super::workload::{immutable, pod_template};
use super::{fill, selector};
use crate::column::Column;
use crate::metadata;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;

/// A name of a job made by a schedule is eleven characters longer than the schedule's.
const CRON_NAME_MAX: usize = 52;

const UID_LABELS: [&str; 2] = [JOB_UID, "controller-uid"];
const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// A job finds its pods by its own uid, unless its owner insists on another way.
pub(super) fn prepare_create(job: &mut Value, is_stored: bool) {
    if job["spec"]["manualSelector"] == Value::Bool(true) {
        return;
    }
    let uid = metadata::text(job, "uid").to_owned();
    let name = metadata::text(job, "name").to_owned();
    // A job that took over the labels of its pods keeps doing so. One without labels takes them
    // over when it is read from the store, so what is never stored never does.
    let is_unlabelled = job["metadata"]["labels"].as_object().is_none_or(Map::is_empty);
    let is_labelled_alike = is_unlabelled && is_stored
        || job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"];
    let Some(spec) = fill::spec(job) else { return };
    let template =
        fill::make(spec, "template").and_then(|template| fill::make(template, "metadata"));
    if let Some(labels) = template.and_then(|metadata| fill::make(metadata, "labels")) {
        for label in UID_LABELS {
            labels.insert(label.to_owned(), json!(uid));
        }
        for label in NAME_LABELS {
            labels.insert(label.to_owned(), json!(name));
        }
    }
    if let Some(labels) =
        fill::make(spec, "selector").and_then(|selector| fill::make(selector, "matchLabels"))
    {
        labels.insert(UID_LABELS[0].to_owned(), json!(uid));
    }
    if is_labelled_alike {
        let labels = job["spec"]["template"]["metadata"]["labels"].clone();
        metadata::of(job).insert("labels".to_owned(), labels);
    }
}

pub(super) fn job(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let spec = root.get("spec");
    let mut errors = Errors::new();
    if old.is_none() {
        generated(&root, &mut errors);
    }
    job_spec(&spec, &mut errors);
    let wanted = spec.get("selector");
    if wanted.is_absent() {
        errors.push(wanted.required(""));
    } else {
        selector::validate(&wanted, &mut errors);
        let labels = spec.get("template.metadata.labels");
        if !selector::matches(wanted.value, labels.value) {
            errors.push(labels.invalid("`selector` does not match template `labels`"));
        }
    }
    if let Some(old) = old {
        job_update(&spec, &At::root(old).get("spec"), &mut errors);
    }
    indexed_name(&root, &mut errors);
    errors
}

/// A selector that is not the job's own is not to be relied on, unless its owner insists.
fn generated(root: &At<'_>, errors: &mut Errors) {
    if root.get("spec.manualSelector").is_true() {
        return;
    }
    let expected = json!({"matchLabels": {UID_LABELS[0]: root.get("metadata.uid").text()}});
    let wanted = root.get("spec.selector");
    if !same(wanted.value, &expected) {
        errors.push(wanted.invalid("`selector` not auto-generated"));
    }
}

/// The pods of an indexed job are named after it and their index.
fn indexed_name(root: &At<'_>, errors: &mut Errors) {
    let completions = root.get("spec.completions").integer().unwrap_or(0);
    if root.get("spec.completionMode").text() != "Indexed" || completions <= 0 {
        return;
    }
    let name = root.get("metadata.name");
    let longest = format!("{}-{}", name.text(), completions - 1);
    if !Name::Dns1123Label.accepts(&longest) {
        let detail = format!("will not able to create pod with invalid DNS label: {longest}");
        errors.push(name.invalid(&detail));
    }
}

fn job_spec(spec: &At<'_>, errors: &mut Errors) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.get(field).not_negative(errors);
    }
    let has = |field: &str| !spec.get(field).is_absent();
    if has("maxFailedIndexes") && !has("backoffLimitPerIndex") {
        errors
            .push(spec.get("backoffLimitPerIndex").required("when maxFailedIndexes is specified"));
    }
    let mode = spec.get("completionMode");
    mode.one_of_if_given(&["NonIndexed", "Indexed"], errors);
    if mode.text() == "Indexed" {
        let completions = spec.get("completions");
        if completions.is_absent() {
            errors.push(completions.required("when completion mode is Indexed"));
        }
        let failed = spec.get("maxFailedIndexes");
        if completions.integer().is_some() && failed.integer() > completions.integer() {
            errors.push(failed.invalid("must be less than or equal to completions"));
        }
    } else if mode.is_absent() || mode.text() == "NonIndexed" {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
            if has(field) {
                errors.push(spec.get(field).invalid("requires indexed completion mode"));
            }
        }
    }
    let replacement = spec.get("podReplacementPolicy");
    if has("podFailurePolicy") {
        replacement.one_of_if_given(&["Failed"], errors);
    } else {
        replacement.one_of_if_given(&["Failed", "TerminatingOrFailed"], errors);
    }
    pod_template(&spec.get("template"), errors);
    restart(spec, errors);
}

fn restart(spec: &At<'_>, errors: &mut Errors) {
    let policy = spec.get("template.spec.restartPolicy");
    match policy.text() {
        "Always" | "" => errors.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        "Never" => {}
        "OnFailure" if spec.get("podFailurePolicy").is_absent() => {}
        "OnFailure" => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(policy.invalid(detail));
        }
        _ => errors.push(policy.unsupported(&["OnFailure", "Never"])),
    }
}

fn job_update(new: &At<'_>, old: &At<'_>, errors: &mut Errors) {
    let completions = new.get("completions");
    if new.get("completionMode").text() == "Indexed" {
        let changed = completions.value != old.get("completions").value;
        if changed && completions.value != new.get("parallelism").value {
            errors
                .push(completions.invalid("can only be modified in tandem with spec.parallelism"));
        }
    } else {
        completions.immutable(&old.get("completions"), errors);
    }
    immutable(new, old, &["selector"], errors);
    let mut before = old.get("template").value.clone();
    if old.get("suspend").is_true() {
        loosen(&mut before, new.get("template").value);
    }
    let template = new.get("template");
    if !same(template.value, &before) {
        errors.push(template.invalid("field is immutable"));
    }
    let fixed = [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ];
    immutable(new, old, &fixed, errors);
}

/// The scheduling fields of a suspended job may still change.
fn loosen(old: &mut Value, new: &Value) {
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        old["spec"][field] = new["spec"][field].clone();
    }
    if !new["spec"]["affinity"].is_null() || !old["spec"]["affinity"].is_null() {
        old["spec"]["affinity"]["nodeAffinity"] = new["spec"]["affinity"]["nodeAffinity"].clone();
    }
    for field in ["labels", "annotations"] {
        old["metadata"][field] = new["metadata"][field].clone();
    }
    for list in ["containers", "initContainers"] {
        let wanted = new["spec"][list].as_array().cloned().unwrap_or_default();
        let containers = old["spec"].get_mut(list).and_then(Value::as_array_mut);
        for (container, wanted) in containers.into_iter().flatten().zip(wanted) {
            container["resources"] = wanted["resources"].clone();
        }
    }
}

pub(super) fn cron_job(object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let spec = root.get("spec");
    let mut errors = Errors::new();
    schedule(&spec, old.map(|old| &old["spec"]), &mut errors);
    spec.get("startingDeadlineSeconds").not_negative(&mut errors);
    spec.get("concurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"], &mut errors);
    let template = spec.get("jobTemplate.spec");
    if template.get("manualSelector").is_true() {
        let detail = "supported values: \"nil\", \"false\"";
        let error = convoy_api::schema::FieldError::about(
            convoy_api::schema::Reason::NotSupported,
            &template.get("manualSelector").path,
            &json!(true),
            detail,
        );
        errors.push(error);
    }
    if !template.get("selector").is_absent() {
        let detail = "`selector` will be auto-generated";
        errors.push(template.get("selector").invalid(detail));
    }
    job_spec(&template, &mut errors);
    spec.get("successfulJobsHistoryLimit").not_negative(&mut errors);
    spec.get("failedJobsHistoryLimit").not_negative(&mut errors);
    let name = root.get("metadata.name");
    if old.is_none() && name.text().len() > CRON_NAME_MAX {
        errors.push(name.invalid("must be no more than 52 characters"));
    }
    errors
}

fn schedule(spec: &At<'_>, old: Option<&Value>, errors: &mut Errors) {
    let schedule = spec.get("schedule");
    let had_zone =
        old.is_some_and(|old| old["schedule"].as_str().is_some_and(|text| text.contains("TZ")));
    let names_zone = schedule.text().contains("TZ");
    if schedule.text().is_empty() {
        errors.push(schedule.required(""));
    } else if let Err(error) = Cron::parse(schedule.text()) {
        errors.push(schedule.invalid(&error.message));
    }
    let zone = spec.get("timeZone");
    if names_zone && !had_zone {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(schedule.invalid(detail));
    } else if names_zone && !zone.is_absent() {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(schedule.invalid(detail));
    }
    if zone.is_absent() || old.is_some_and(|old| &old["timeZone"] == zone.value) {
        return;
    }
    if zone.text().is_empty() {
        errors.push(zone.invalid("timeZone must be nil or non-empty string"));
    } else if zone.text().eq_ignore_ascii_case("local") {
        let detail =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(zone.invalid(detail));
    } else if let Err(error) = cron::zone(zone.text()) {
        errors.push(zone.invalid(&error.to_string()));
    }
}

pub(super) struct Job;

impl Kind for Job {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::job(object);
    }

    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare_create(object, request.query.get("dryRun").is_none());
        Ok(())
    }

    fn complete_new(&self, object: &mut Value) {
        prepare_create(object, false);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        job(change.object, change.old)
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object).get("spec.template"))
    }

    fn dependents(&self) -> Dependents {
        Dependents::Orphaned
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["status.successful"]
    }

    fn columns(&self) -> &'static [Column] {
        columns::JOB
    }
}

pub(super) struct CronJob;

impl Kind for CronJob {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        defaults::cron_job(object);
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        cron_job(change.object, change.old)
    }

    fn pod<'o>(&self, object: &'o Value) -> Option<At<'o>> {
        Some(At::root(object).get("spec.jobTemplate.spec.template"))
    }

    fn columns(&self) -> &'static [Column] {
        columns::CRON_JOB
    }
}
