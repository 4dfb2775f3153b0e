//! Namespaces live until their content is gone.

use convoy_api::text::Name;
use convoy_api::well_known::label::NAMESPACE_NAME;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::fill;
use super::kind::{Change, Kind};
use crate::column::Cell::Text;
use crate::column::{AGE, Column, NAME, string};
use crate::metadata;
use crate::registry::Resource;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};

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
        labels.insert(NAMESPACE_NAME.into(), json!(name));
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
        labels.insert(NAMESPACE_NAME.into(), json!(name));
    }
}

/// Namespaces that are there for ever.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) struct Namespace;

impl Kind for Namespace {
    fn default(&self, _resource: &Resource, object: &mut Value) {
        label(object);
    }

    fn prepare_create(&self, _request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare_create(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        current: &Value,
    ) -> ApiResult<()> {
        prepare_update(&request.target.subresource, object, current);
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        validate(change.object)
    }

    fn may_vanish(&self, object: &Value) -> bool {
        object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
    }

    fn tells_grace(&self) -> bool {
        false
    }

    fn mark_deleting(&self, object: &mut Value) {
        object["status"]["phase"] = json!("Terminating");
    }

    fn check_delete(&self, request: &ResourceRequest, object: &Value) -> ApiResult<()> {
        let name = metadata::text(object, "name");
        if PROTECTED.contains(&name) {
            let why = "this namespace may not be deleted";
            return Err(Status::forbidden(&request.resource, name, why));
        }
        Ok(())
    }

    fn name_errors(&self, _object: &Value, name: &str) -> Vec<String> {
        Name::Dns1123Label.errors(name)
    }

    fn is_namespace(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["status.phase"]
    }

    fn columns(&self) -> &'static [Column] {
        const { &[NAME, string("Status", Text("/status/phase", "")), AGE] }
    }
}

/// Every namespace can be selected by its own name.
fn label(object: &mut Value) {
    let name = metadata::text(object, "name").to_owned();
    if name.is_empty() {
        return;
    }
    let metadata = metadata::of(object);
    if let Some(labels) = fill::make(metadata, "labels") {
        labels.insert(NAMESPACE_NAME.into(), json!(name));
    }
}
