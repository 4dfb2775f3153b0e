//! Namespaces live until their content is gone.

use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use crate::metadata;

/// What keeps a namespace has a name that says whose it is.
pub(super) fn validate(object: &Value) -> Errors {
    let mut errors = Errors::new();
    let finalizers = At::root(object).get("spec.finalizers");
    for finalizer in finalizers.items() {
        let whole = At::new(&finalizers.path, finalizer.value);
        whole.name(Name::QualifiedName, &mut errors);
        let is_standard =
            matches!(finalizer.text(), "kubernetes" | "orphan" | "foregroundDeletion");
        if errors.is_empty() && !is_standard && !finalizer.text().contains('/') {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(whole.invalid(detail));
        }
    }
    errors
}

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
