//! Nodes in a table.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::column::Cell::{Made, Text};
use crate::column::{AGE, Column, NAME, Row, string, wide};

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    string("Status", Made(status)),
    string("Roles", Made(roles)),
    AGE,
    string("Version", Text("/status/nodeInfo/kubeletVersion", "")),
    wide("Internal-IP", Made(internal_address)),
    wide("External-IP", Made(external_address)),
    wide("OS-Image", Text("/status/nodeInfo/osImage", "<unknown>")),
    wide("Kernel-Version", Made(kernel)),
    wide("Container-Runtime", Text("/status/nodeInfo/containerRuntimeVersion", "<unknown>")),
];

fn status(row: &Row<'_>) -> Value {
    // The last one counts, should there be several.
    let ready = row.items("/status/conditions").filter(|one| one["type"] == "Ready").last();
    let status = match ready.map(|one| &one["status"]) {
        None => "Unknown",
        Some(status) if status == "True" => "Ready",
        Some(_) => "NotReady",
    };
    let is_cordoned = row.object["spec"]["unschedulable"] == true;
    json!(format!("{status}{}", if is_cordoned { ",SchedulingDisabled" } else { "" }))
}

fn roles(row: &Row<'_>) -> Value {
    let labels = row.object["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    json!(if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") })
}

fn internal_address(row: &Row<'_>) -> Value {
    address(row, "InternalIP")
}

fn external_address(row: &Row<'_>) -> Value {
    address(row, "ExternalIP")
}

fn address(row: &Row<'_>, of: &str) -> Value {
    let mut addresses = row.items("/status/addresses");
    addresses.find(|one| one["type"] == of).map_or(json!("<none>"), |one| one["address"].clone())
}

fn kernel(row: &Row<'_>) -> Value {
    let version = row.text_or("/status/nodeInfo/kernelVersion", "<unknown>");
    let architecture = row.text("/status/nodeInfo/architecture");
    json!(if architecture.is_empty() { version } else { format!("{version} ({architecture})") })
}
