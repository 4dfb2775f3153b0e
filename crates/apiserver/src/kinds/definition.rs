//! `CustomResourceDefinitions`: what users add to the kinds of their cluster.

pub(crate) mod compile;
pub(crate) mod names;
mod rules;
mod schema;
mod state;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::conditions;
use crate::registry::{Resource, builtin};

pub(crate) use compile::storage_resource;
pub(crate) use rules::validate;
pub(crate) use state::{CLEANUP, mark_deleting, prepare_create, prepare_update, settle};

/// The row of definitions themselves.
pub(crate) fn resource() -> &'static Arc<Resource> {
    let found = builtin().get("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    found.expect("a built-in resource")
}

/// Fills in what a definition leaves out.
pub(crate) fn default(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut fill = |field: &str, value: String| {
            let is_empty = names.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
            if is_empty && !kind.is_empty() {
                names.insert(field.into(), json!(value));
            }
        };
        fill("singular", kind.to_lowercase());
        fill("listKind", format!("{kind}List"));
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    if let Some(service) = spec.pointer_mut("/conversion/webhook/clientConfig/service")
        && service.is_object()
        && service["port"].is_null()
    {
        service["port"] = json!(443);
    }
}

/// Whether a condition of a definition is true.
pub(crate) fn is_true(definition: &Value, kind: &str) -> bool {
    conditions::is_true(&definition["status"], kind)
}

#[cfg(test)]
mod tests;
