//! The schemas of a definition must be structural, and their rules must compile.

use convoy_api::schema::{FieldError, Reason, structural_errors};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// Why the schemas of a definition would be refused.
pub(super) fn errors(definition: &Value) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = Vec::new();
    let versions = definition["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let place = |index: usize| format!("spec.versions[{index}].schema");
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let at = format!("{}.openAPIV3Schema", place(index));
            errors.push(FieldError::plain(Reason::Required, &at, "schemas are required"));
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    let typed = match serde_json::from_value::<CustomResourceDefinition>(definition.clone()) {
        Ok(typed) => typed,
        Err(error) => {
            let detail = format!("cannot be read: {error}");
            return vec![FieldError::plain(Reason::Invalid, "spec.versions", &detail)];
        }
    };
    // A schema that all versions have counts as that of the definition.
    let is_shared = versions.iter().all(|version| version["schema"] == versions[0]["schema"]);
    for line in structural_errors(&typed) {
        let Some((name, rest)) = line.split_once(": ") else { continue };
        // Which versions there are is checked where their names are.
        let index = versions.iter().position(|version| version["name"] == name);
        let (Some(index), Some((path, why))) = (index, rest.split_once(": ")) else { continue };
        match (is_shared, index) {
            (false, _) => errors.push(error(&place(index), path, why)),
            (true, 0) => errors.push(error("spec.validation", path, why)),
            (true, _) => {}
        }
    }
    errors
}

fn error(place: &str, path: &str, why: &str) -> FieldError {
    // Other places of the schema that are named stand in it too.
    let why = why.replace(" within openAPIV3Schema", &format!(" within {place}.openAPIV3Schema"));
    let titles = [
        ("Required value", Reason::Required),
        ("Forbidden", Reason::Forbidden),
        ("Unsupported value", Reason::NotSupported),
    ];
    let known = titles.into_iter().find(|(title, _)| why.starts_with(title));
    let (reason, message) = match known {
        Some((_, reason)) => (reason, why),
        None => (Reason::Invalid, format!("Invalid value: {why}")),
    };
    FieldError::new(format!("{place}.{path}"), message, reason)
}

/// The schema of the field at a path such as `.spec.size`.
pub(super) fn at<'s>(schema: &'s Value, path: &str) -> Option<&'s Value> {
    let parts = path.strip_prefix('.')?.split('.');
    parts.into_iter().try_fold(schema, |schema, part| schema["properties"].get(part))
}
