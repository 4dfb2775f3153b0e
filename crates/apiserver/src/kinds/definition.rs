//! `CustomResourceDefinitions`: what users add to the kinds of their cluster.

pub(crate) mod compile;
pub(crate) mod names;
mod rules;
mod schema;
mod state;

use std::sync::Arc;

use serde_json::{Value, json};

use super::at::Errors;
use super::kind::{Change, Consequence, Kind, OWNERSHIP_ALONE};
use crate::conditions;
use crate::registry::{Resource, builtin};
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;

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

pub(super) struct Definition;

impl Kind for Definition {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        default(object);
    }

    fn prepare_create(&self, _request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare_create(object);
        Ok(())
    }

    fn complete_new(&self, object: &mut Value) {
        prepare_create(object);
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        _current: &Value,
    ) -> ApiResult<()> {
        prepare_update(object, &request.target.subresource);
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        validate(change.object, change.old)
    }

    fn status_metadata(&self) -> &'static [&'static str] {
        OWNERSHIP_ALONE
    }

    fn mark_deleting(&self, object: &mut Value) {
        mark_deleting(object);
    }

    fn deletion_finalizer(&self) -> Option<&'static str> {
        Some(CLEANUP)
    }

    fn consequence(&self) -> Option<Consequence> {
        Some(Consequence::ServeKinds)
    }
}

#[cfg(test)]
mod tests;
