//! Namespaces live until their content is gone.

use serde_json::{Value, json};

use crate::metadata;

pub(super) fn prepare_create(object: &mut Value) {
    let name = metadata::text(object, "name").to_owned();
    let labels = metadata::of(object).entry("labels").or_insert_with(|| json!({}));
    if let Value::Object(labels) = labels {
        labels.insert("kubernetes.io/metadata.name".into(), json!(name));
    }
    if object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
        object["spec"] = json!({"finalizers": ["kubernetes"]});
    }
    object["status"] = json!({"phase": "Active"});
}

/// Only `finalize` changes what keeps a namespace.
pub(super) fn prepare_update(subresource: &str, object: &mut Value, current: &Value) {
    if subresource == "finalize" {
        let finalizers = object["spec"]["finalizers"].clone();
        *object = current.clone();
        object["spec"]["finalizers"] = finalizers;
    } else {
        object["spec"] = current["spec"].clone();
    }
    let name = metadata::text(current, "name").to_owned();
    let labels = metadata::of(object).entry("labels").or_insert_with(|| json!({}));
    if let Value::Object(labels) = labels {
        labels.insert("kubernetes.io/metadata.name".into(), json!(name));
    }
}
