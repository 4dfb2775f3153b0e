//! Cells of workloads: how far they are, and what scales them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::duration;
use super::column::{Row, condition};
use super::text::plain;

/// `3/5`: ready and wanted.
pub(super) fn ready(row: &Row<'_>) -> Value {
    json!(format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas")))
}

/// `statefulset.apps/web`: whose revision this is.
pub(super) fn controller(row: &Row<'_>) -> Value {
    let Some(owner) = row.items("/metadata/ownerReferences").find(|one| one["controller"] == true)
    else {
        return json!("<none>");
    };
    let api_version = owner["apiVersion"].as_str().unwrap_or_default();
    let (group, _) = crate::registry::split_api_version(api_version);
    let kind = plain(&owner["kind"]).to_lowercase();
    let dot = if group.is_empty() { "" } else { "." };
    json!(format!("{kind}{dot}{group}/{}", plain(&owner["name"])))
}

pub(super) fn job_status(row: &Row<'_>) -> Value {
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

pub(super) fn job_completions(row: &Row<'_>) -> Value {
    let done = row.number("/status/succeeded");
    let parallel = row.number("/spec/parallelism");
    json!(match row.object.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallel > 1 => format!("{done}/1 of {parallel}"),
        None => format!("{done}/1"),
    })
}

pub(super) fn job_duration(row: &Row<'_>) -> Value {
    let time = |pointer| row.text(pointer).parse::<Timestamp>().ok();
    let Some(start) = time("/status/startTime") else {
        return json!("");
    };
    let end = time("/status/completionTime").unwrap_or(row.now);
    json!(duration(end.duration_since(start).as_secs()))
}

pub(super) fn suspended(row: &Row<'_>) -> Value {
    json!(match row.object["spec"]["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    })
}

pub(super) fn last_schedule(row: &Row<'_>) -> Value {
    let pointer = "/status/lastScheduleTime";
    json!(if row.text(pointer).is_empty() { "<none>".to_owned() } else { row.age(pointer) })
}

/// `Deployment/web`: what an autoscaler scales.
pub(super) fn target(row: &Row<'_>) -> Value {
    let target = &row.object["spec"]["scaleTargetRef"];
    json!(format!("{}/{}", plain(&target["kind"]), plain(&target["name"])))
}

/// How many metrics are shown.
const SHOWN_MAX: usize = 2;

/// What an autoscaler measures: now, and what it aims at.
pub(super) fn metrics(row: &Row<'_>) -> Value {
    let current: Vec<&Value> = row.items("/status/currentMetrics").collect();
    let shown: Vec<String> = row
        .items("/spec/metrics")
        .enumerate()
        .map(|(index, spec)| metric(spec, current.get(index).copied().unwrap_or(&Value::Null)))
        .collect();
    json!(match shown.len() {
        0 => "<none>".to_owned(),
        all @ 0..=SHOWN_MAX => shown[..all].join(", "),
        all => format!("{} + {} more...", shown[..SHOWN_MAX].join(", "), all - SHOWN_MAX),
    })
}

fn metric(spec: &Value, status: &Value) -> String {
    let (part, has_name) = match spec["type"].as_str() {
        Some("External") => ("external", false),
        Some("Pods") => ("pods", false),
        Some("Object") => ("object", false),
        Some("Resource") => ("resource", true),
        Some("ContainerResource") => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let goal = &spec[part]["target"];
    let now = &status[part]["current"];
    let known = |value: &Value, unit: &str| match value {
        Value::Null => "<unknown>".to_owned(),
        value => format!("{}{unit}", plain(value)),
    };
    let averages = !goal["averageValue"].is_null();
    let (now, goal, suffix) = match (averages, has_name) {
        (true, _) => {
            let suffix = if has_name || part == "pods" { "" } else { " (avg)" };
            (known(&now["averageValue"], ""), plain(&goal["averageValue"]), suffix)
        }
        (false, true) => {
            let goal = match &goal["averageUtilization"] {
                Value::Null => "<auto>".to_owned(),
                value => format!("{}%", plain(value)),
            };
            (known(&now["averageUtilization"], "%"), goal, "")
        }
        (false, false) => (known(&now["value"], ""), plain(&goal["value"]), ""),
    };
    let name = if has_name { format!("{}: ", plain(&spec[part]["name"])) } else { String::new() };
    format!("{name}{now}/{goal}{suffix}")
}
