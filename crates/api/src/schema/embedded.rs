//! `x-kubernetes-embedded-resource`: an object inside an object has a kind too.

use serde_json::{Map, Value};

use super::error::{FieldError, Reason};
use super::lists::child;
use super::node::{Additional, Node};

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
    let Some(version @ Value::String(text)) = fields.get("apiVersion") else { return };
    if text.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {text}");
        errors.push(FieldError::invalid(&child(path, "apiVersion"), version, &detail));
    }
}
