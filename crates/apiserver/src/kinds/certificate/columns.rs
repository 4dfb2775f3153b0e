//! Requests for certificates and bundles of trust in tables.

use serde_json::{Value, json};

use crate::column::Cell::{Labels, Made, Text};
use crate::column::{AGE, Column, NAME, Row, condition, duration, string};

pub(super) const SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    string("SignerName", Text("/spec/signerName", "<none>")),
    string("Requestor", Text("/spec/username", "")),
    string("RequestedDuration", Made(requested_duration)),
    string("Condition", Made(state)),
];

pub(super) const TRUST_BUNDLE: &[Column] =
    &[NAME, string("SignerName", Text("/spec/signerName", "<none>"))];

pub(super) const POD_REQUEST: &[Column] = &[
    NAME,
    string("PodName", Text("/spec/podName", "")),
    string("ServiceAccountName", Text("/spec/serviceAccountName", "")),
    string("NodeName", Text("/spec/nodeName", "")),
    string("SignerName", Text("/spec/signerName", "")),
    string("State", Made(pod_state)),
    string("UnverifiedUserAnnotations", Labels("/spec/unverifiedUserAnnotations")),
];

fn requested_duration(row: &Row<'_>) -> Value {
    let seconds = row.object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    json!(seconds.map_or_else(|| "<none>".to_owned(), duration))
}

fn state(row: &Row<'_>) -> Value {
    let conditions = &row.object["status"]["conditions"];
    let has = |of: &str| condition(conditions, of).is_some();
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if row.text("/status/certificate").is_empty() { "" } else { ",Issued" };
    json!(format!("{decision}{failed}{issued}"))
}

fn pod_state(row: &Row<'_>) -> Value {
    let states = row.items("/status/conditions").filter_map(|one| one["type"].as_str());
    let known = states.filter(|state| ["Issued", "Denied", "Failed"].contains(state));
    json!(known.last().unwrap_or("Pending"))
}
