//! Conditions that the server itself sets on pods.

use serde_json::{Value, json};

use crate::resource_request::ResourceRequest;
use crate::surroundings::seconds;

/// Sets a condition; its time is that of the last change of its status.
pub(super) fn set(request: &ResourceRequest, object: &mut Value, condition: &Value) {
    let now = seconds(request.server.now());
    let mut condition = condition.clone();
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Some(list) = object["status"]["conditions"].as_array_mut() else { return };
    let standing = list.iter_mut().find(|one| one["type"] == condition["type"]);
    let changed = standing.as_ref().is_none_or(|one| one["status"] != condition["status"]);
    let since = match (&standing, changed) {
        (Some(standing), false) => standing["lastTransitionTime"].clone(),
        _ => json!(now),
    };
    condition["lastTransitionTime"] = since;
    match standing {
        Some(standing) => *standing = condition,
        None => list.push(condition),
    }
}
