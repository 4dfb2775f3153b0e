//! Autoscalers in a table, in their newest version.

use serde_json::{Value, json};

use crate::column::Cell::{Made, Number, Text};
use crate::column::{AGE, Column, NAME, Row, plain, string};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    string("Reference", Made(target)),
    string("Targets", Made(metrics)),
    string("MinPods", Text("/spec/minReplicas", "<unset>")),
    string("MaxPods", Number("/spec/maxReplicas")),
    string("Replicas", Number("/status/currentReplicas")),
    AGE,
];

/// How many metrics are shown.
const SHOWN_MAX: usize = 2;

/// `Deployment/web`: what an autoscaler scales.
fn target(row: &Row<'_>) -> Value {
    let target = &row.object["spec"]["scaleTargetRef"];
    json!(format!("{}/{}", plain(&target["kind"]), plain(&target["name"])))
}

/// What an autoscaler measures: now, and what it aims at.
fn metrics(row: &Row<'_>) -> Value {
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
