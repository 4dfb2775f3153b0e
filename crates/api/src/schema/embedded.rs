//! `x-kubernetes-embedded-resource`: an object inside an object has a kind too.

use serde_json::{Map, Value};

use super::error::{FieldError, Reason};
use super::lists::child;
use super::node::{Additional, Node};
use crate::text::Name;

pub(super) fn validate(node: &Node, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(node, value, "", &mut errors);
    errors
}

fn walk(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if node.embedded {
                check(fields, path, errors);
            }
            for (name, value) in fields {
                if let Some(schema) = node.properties.get(name) {
                    walk(schema, value, &child(path, name), errors);
                } else if let Additional::Like(schema) = &node.additional {
                    walk(schema, value, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(schema) = &node.items {
                    walk(schema, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn check(fields: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = child(path, name);
        match fields.get(name) {
            None => errors.push(FieldError::plain(Reason::Required, &field, "")),
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(value @ Value::String(_)) => {
                errors.push(FieldError::invalid(&field, value, "must not be empty"));
            }
            Some(value) => errors.push(FieldError::invalid(&field, value, "must be a string")),
        }
    }
    if let Some(version @ Value::String(text)) = fields.get("apiVersion")
        && text.matches('/').count() > 1
    {
        let detail = format!("unexpected GroupVersion string: {text}");
        errors.push(FieldError::invalid(&child(path, "apiVersion"), version, &detail));
    }
    if let Some(kind @ Value::String(text)) = fields.get("kind")
        && !text.is_empty()
        && let broken = Name::Dns1035Label.errors(&text.to_lowercase())
        && !broken.is_empty()
    {
        let broken = broken.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {broken}");
        errors.push(FieldError::invalid(&child(path, "kind"), kind, &detail));
    }
    if let Some(metadata) = fields.get("metadata") {
        check_names(metadata, &child(path, "metadata"), errors);
    }
}

/// Names are path segments, namespaces are DNS labels.
fn check_names(metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(name @ Value::String(text)) = metadata.get("name") {
        let field = child(path, "name");
        if text == "." || text == ".." {
            errors.push(FieldError::invalid(&field, name, &format!("may not be '{text}'")));
        }
        for letter in ['/', '%'] {
            if text.contains(letter) {
                let detail = format!("may not contain '{letter}'");
                errors.push(FieldError::invalid(&field, name, &detail));
            }
        }
    }
    if let Some(namespace @ Value::String(text)) = metadata.get("namespace")
        && !text.is_empty()
    {
        for broken in Name::Dns1123Label.errors(text) {
            errors.push(FieldError::invalid(&child(path, "namespace"), namespace, &broken));
        }
    }
}
