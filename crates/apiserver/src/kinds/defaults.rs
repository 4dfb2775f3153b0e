//! What the server fills in for kinds that leave something open, when a request is read. All of
//! it can be done twice without doing more.

pub(super) mod access;
pub(super) mod autoscaling;
pub(super) mod networking;
pub(super) mod pod;
pub(super) mod service;
pub(super) mod storage;
pub(super) mod workload;

use serde_json::Value;

use super::fill::Fields;

pub(super) fn with(object: &mut Value, change: impl FnOnce(&mut Fields)) {
    if let Value::Object(fields) = object {
        change(fields);
    }
}
