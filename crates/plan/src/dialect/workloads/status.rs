//! Statuses as they should read: the fields that a controller knows, over those that are stored.

pub(crate) mod budget;
pub(crate) mod cron_job;
pub(crate) mod daemon_set;
pub(crate) mod job;
pub(crate) mod stateful_set;

use convoy_api::Object;
use serde_json::{Map, Value};

use crate::status::is_same;

/// The status of `owner` with these fields, if it has to be written. Null removes a field.
pub(crate) fn changed(owner: &Object, fields: Map<String, Value>) -> Option<Value> {
    let mut status = owner.status().as_object().cloned().unwrap_or_default();
    for (name, value) in fields {
        match value {
            Value::Null => _ = status.shift_remove(&name),
            value => _ = status.insert(name, value),
        }
    }
    let status = Value::Object(status);
    (!is_same(&status, owner.status())).then_some(status)
}
