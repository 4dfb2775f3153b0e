//! Controllers of pods in tables.

use serde_json::{Value, json};

use crate::column::Cell::{Each, Labels, Made, Number, Selector};
use crate::column::{AGE, Column, NAME, Row, number, plain, string, wide};
use crate::registry::split_api_version;

const TEMPLATE: &str = "/spec/template/spec/containers";

pub(super) const DEPLOYMENT: &[Column] = &[
    NAME,
    string("Ready", Made(ready)),
    string("Up-to-date", Number("/status/updatedReplicas")),
    string("Available", Number("/status/availableReplicas")),
    AGE,
    containers(TEMPLATE),
    images(TEMPLATE),
    wide("Selector", Selector("/spec/selector", "")),
];

pub(super) const REPLICA_SET: &[Column] = &[
    NAME,
    number("Desired", "/spec/replicas"),
    number("Current", "/status/replicas"),
    number("Ready", "/status/readyReplicas"),
    AGE,
    containers(TEMPLATE),
    images(TEMPLATE),
    wide("Selector", Selector("/spec/selector", "<none>")),
];

pub(super) const DAEMON_SET: &[Column] = &[
    NAME,
    number("Desired", "/status/desiredNumberScheduled"),
    number("Current", "/status/currentNumberScheduled"),
    number("Ready", "/status/numberReady"),
    number("Up-to-date", "/status/updatedNumberScheduled"),
    number("Available", "/status/numberAvailable"),
    string("Node Selector", Labels("/spec/template/spec/nodeSelector")),
    AGE,
    containers(TEMPLATE),
    images(TEMPLATE),
    wide("Selector", Selector("/spec/selector", "<none>")),
];

pub(super) const STATEFUL_SET: &[Column] =
    &[NAME, string("Ready", Made(ready)), AGE, containers(TEMPLATE), images(TEMPLATE)];

pub(super) const CONTROLLER_REVISION: &[Column] =
    &[NAME, string("Controller", Made(controller)), string("Revision", Number("/revision")), AGE];

pub(super) const REPLICATION_CONTROLLER: &[Column] = &[
    NAME,
    number("Desired", "/spec/replicas"),
    number("Current", "/status/replicas"),
    number("Ready", "/status/readyReplicas"),
    AGE,
    containers(TEMPLATE),
    images(TEMPLATE),
    wide("Selector", Labels("/spec/selector")),
];

pub(super) const POD_TEMPLATE: &[Column] = &[
    NAME,
    string("Containers", Each("/template/spec/containers", "name")),
    string("Images", Each("/template/spec/containers", "image")),
    string("Pod Labels", Labels("/template/metadata/labels")),
];

/// Names and images of the containers that a template describes.
pub(in crate::kinds) const fn containers(list: &'static str) -> Column {
    wide("Containers", Each(list, "name"))
}

pub(in crate::kinds) const fn images(list: &'static str) -> Column {
    wide("Images", Each(list, "image"))
}

/// `3/5`: ready and wanted.
fn ready(row: &Row<'_>) -> Value {
    json!(format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas")))
}

/// `statefulset.apps/web`: whose revision this is.
fn controller(row: &Row<'_>) -> Value {
    let Some(owner) = row.items("/metadata/ownerReferences").find(|one| one["controller"] == true)
    else {
        return json!("<none>");
    };
    let api_version = owner["apiVersion"].as_str().unwrap_or_default();
    let (group, _) = split_api_version(api_version);
    let kind = plain(&owner["kind"]).to_lowercase();
    let dot = if group.is_empty() { "" } else { "." };
    json!(format!("{kind}{dot}{group}/{}", plain(&owner["name"])))
}
