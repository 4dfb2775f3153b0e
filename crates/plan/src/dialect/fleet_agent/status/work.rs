//! The status of a Work.

use convoy_api::Object;
use convoy_api::object::member::list;
use convoy_api::size::SizeBudget;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::manifest::entry;
use crate::availability::Availability;
use crate::condition::{self, Condition};
use crate::dialect::fleet_agent::decide::manifest::{ApplyOrReportResult, Processed};
use crate::dialect::fleet_agent::decide::work::Application;
use crate::dialect::fleet_agent::names::{
    APPLIED, APPLY_FAILED, AVAILABLE, DECODING_ERRED, DIFF_REPORTED, STATUS_TRIMMED,
};
use crate::dialect::fleet_agent::read::manifest::Manifest;
use crate::dialect::fleet_agent::read::recorded::{self, Recorded};
use crate::dialect::fleet_agent::read::strategy::mirrors;
use crate::step::Denial;

/// Etcd takes requests of up to 1.5 MiB.
const WORK_BYTES_MAX: usize = 1_415_578;

/// The status of a Work all of whose manifests were looked at. None: it reads so already.
pub(crate) fn status(
    work: &Object,
    application: &Application<'_>,
    now: Timestamp,
) -> Option<Value> {
    let recorded = recorded::of_work(work);
    let mirror = mirrors(work);
    let entries = application.processed.iter().map(|processed| {
        let before = before(&recorded, &processed.manifest);
        entry(processed, before, mirror, (application.looks.due, now))
    });
    let entries: Vec<Value> = entries.collect();
    let mut status = work.status().as_object().cloned().unwrap_or_default();
    let mut conditions = list(work.status(), "conditions").to_vec();
    for (kind, told) in summary(application) {
        match told {
            Some(told) => {
                condition::set(&mut conditions, &told.of_generation(work.generation()), now);
            }
            None => condition::remove(&mut conditions, kind),
        }
    }
    status.insert("manifestConditions".into(), Value::Array(entries));
    status.insert("conditions".into(), Value::Array(conditions));
    let status = fitting(work, status, now);
    (status != *work.status()).then_some(status)
}

/// The status after the server has denied the write of one object: the others keep theirs.
pub(crate) fn denied(
    work: &Object,
    application: &Application<'_>,
    denial: &Denial,
    now: Timestamp,
) -> Option<Value> {
    let reason = if denial.is_of_unknown_kind() { DECODING_ERRED } else { APPLY_FAILED };
    let object = &denial.target;
    let mut application = application.clone();
    for processed in &mut application.processed {
        let is_written = match &processed.result {
            ApplyOrReportResult::Pending { .. } | ApplyOrReportResult::Retried { .. } => true,
            ApplyOrReportResult::Applied { write, .. } => write.is_some(),
            ApplyOrReportResult::Failed { .. } | ApplyOrReportResult::Reported => false,
        };
        if is_written && processed.manifest.identifier.key(&object.cluster) == *object {
            let message = denial.message.clone();
            processed.result = ApplyOrReportResult::Failed { reason, message };
        }
    }
    status(work, &application, now)
}

fn before<'w>(recorded: &[Recorded<'w>], manifest: &Manifest<'_>) -> &'w Value {
    if manifest.problem.is_some() {
        return &Value::Null;
    }
    let key = manifest.identifier.key("");
    recorded.iter().find(|it| it.identifier.key("") == key).map_or(&Value::Null, |it| it.entry)
}

/// The conditions of the Work as a whole; those that do not apply are taken away.
fn summary(application: &Application<'_>) -> [(&'static str, Option<Condition<'static>>); 3] {
    let all = application.processed.len();
    let count = |is: &dyn Fn(&Processed<'_>) -> bool| {
        application.processed.iter().filter(|it| is(it)).count()
    };
    if application.strategy.only_reports() {
        let told = count(&|it| it.result == ApplyOrReportResult::Reported);
        let reasons = ("AllManifestsDiffReported", "SomeManifestsHaveNotReportedDiff");
        let reported = counted(DIFF_REPORTED, told, all, reasons, "compared with the member");
        return [(APPLIED, None), (AVAILABLE, None), (DIFF_REPORTED, Some(reported))];
    }
    let applied = count(&|it| matches!(it.result, ApplyOrReportResult::Applied { .. }));
    let reasons = ("AllManifestsApplied", "SomeManifestsAreNotApplied");
    let told = counted(APPLIED, applied, all, reasons, "applied");
    let available = (applied == all).then(|| available(application));
    [(APPLIED, Some(told)), (AVAILABLE, available), (DIFF_REPORTED, None)]
}

fn available(application: &Application<'_>) -> Condition<'static> {
    let judged = application.processed.iter().filter_map(|it| match &it.result {
        ApplyOrReportResult::Applied { availability, .. } => Some(availability),
        _ => None,
    });
    let all = application.processed.len();
    let is_good = |it: &&Availability| {
        matches!(it, Availability::Available | Availability::NotTrackable { .. })
    };
    let good = judged.clone().filter(is_good).count();
    let untracked = judged.filter(|it| matches!(it, Availability::NotTrackable { .. })).count();
    if good == all && untracked > 0 {
        let message = format!("{untracked} of {all} objects cannot be tracked");
        return Condition::new(AVAILABLE, "True", "WorkNotTrackable", message);
    }
    let reasons = ("AllManifestsAvailable", "SomeManifestsAreNotAvailable");
    counted(AVAILABLE, good, all, reasons, "available")
}

fn counted(
    kind: &'static str,
    good: usize,
    all: usize,
    (yes, no): (&'static str, &'static str),
    word: &str,
) -> Condition<'static> {
    let message = format!("{good} of {all} objects are {word}");
    let reason = if good == all { yes } else { no };
    Condition::new(kind, condition::truth(good == all), reason, message)
}

/// A status that the server takes: what differs is summed up where all of it would be too much.
fn fitting(work: &Object, mut status: Map<String, Value>, now: Timestamp) -> Value {
    let is_too_large = |status: &Map<String, Value>| {
        let whole = json!({"spec": work.spec(), "status": status});
        SizeBudget::beside(WORK_BYTES_MAX, &whole).is_err()
    };
    let trimmed = is_too_large(&status);
    if trimmed {
        let entries = status.get_mut("manifestConditions").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.shift_remove("backReportedStatus");
            for (details, list) in
                [("driftDetails", "observedDrifts"), ("diffDetails", "observedDiffs")]
            {
                if let Some(details) = entry.get_mut(details) {
                    details[list] = json!([{"path": "/", "valueInMember":
                        "(left out: the status would be too large)"}]);
                }
            }
        }
    }
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        if trimmed {
            let message = "what differs and reported statuses are left out: the Work would be \
                           too large";
            let told = Condition::new(STATUS_TRIMMED, "True", "Oversized", message)
                .of_generation(work.generation());
            condition::set(conditions, &told, now);
        } else {
            condition::remove(conditions, STATUS_TRIMMED);
        }
    }
    Value::Object(status)
}
