//! `x-kubernetes-list-type`: no element of a set twice, no key of a map list twice.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::{FieldError, Reason};
use super::go;
use super::node::{Additional, ListType, Node};

pub(super) fn validate(node: &Node, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(node, value, "", &mut errors);
    errors
}

fn walk(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(schema) = node.properties.get(name) {
                    walk(schema, value, &child(path, name), errors);
                } else if let Additional::Like(schema) = &node.additional {
                    walk(schema, value, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            match &node.list_type {
                ListType::Atomic => {}
                ListType::Set => {
                    for index in repeated(items) {
                        errors.push(duplicate(path, index, &items[index]));
                    }
                }
                ListType::Map { keys } => check_map(keys, items, path, errors),
            }
            if let Some(schema) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    walk(schema, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_map(names: &[String], items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let stranger = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = stranger {
        let field = format!("{path}[{index}]");
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(&field, &items[index], detail));
        return;
    }
    let key = |item: &Value| {
        let fields = names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    let keys: Vec<Value> = items.iter().map(key).collect();
    errors.extend(repeated(&keys).into_iter().map(|index| duplicate(path, index, &keys[index])));
}

/// Where each value that comes more than once comes for the second time.
fn repeated(items: &[Value]) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut again = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let times = seen.entry(go::sorted(item).to_string()).or_default();
        *times += 1;
        if *times == 2 {
            again.push(index);
        }
    }
    again
}

fn duplicate(path: &str, index: usize, value: &Value) -> FieldError {
    FieldError::about(Reason::Duplicate, &format!("{path}[{index}]"), value, "")
}

/// The path of a named field.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
