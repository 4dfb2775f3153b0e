//! Whether an object has the form that its shape says. Every other walk relies on it.

use std::collections::BTreeSet;

use convoy_api::schema::go;
use serde_json::Value;

use super::element::{Element, Identity};
use super::fields::DEPTH_MAX;
use crate::shape::{Form, List, ListKind, Scalar, Shape};

/// As many as anybody reads; a hostile object could have one per value.
const MISMATCHES_MAX: usize = 50;

/// Whether an item may occur twice in a list that identifies its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allowed,
    Refused,
}

/// Where an object does not have its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n  "))]
pub struct Mismatches(Vec<String>);

/// Checks a whole object, except for `metadata.managedFields`, which have their own reader.
pub(super) fn check(
    shape: Shape<'_>,
    object: &Value,
    duplicates: Duplicates,
) -> Result<(), Mismatches> {
    let mut walk = Walk { duplicates, path: Vec::new(), found: Vec::new() };
    walk.object(shape, object);
    let mut found = walk.found;
    if found.is_empty() {
        return Ok(());
    }
    if found.len() > 1 {
        found.insert(0, "errors:".to_owned());
    }
    Err(Mismatches(found))
}

struct Walk<'v> {
    duplicates: Duplicates,
    path: Vec<Step<'v>>,
    found: Vec<String>,
}

enum Step<'v> {
    Field(&'v str),
    Item(Identity<'v>),
    Index(usize),
}

impl<'v> Walk<'v> {
    fn object(&mut self, shape: Shape<'v>, object: &'v Value) {
        let Value::Object(fields) = object else {
            return self.value(shape, object);
        };
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("metadata", Value::Object(metadata)) => {
                    let Some(shape) = shape.child(key) else { continue };
                    self.path.push(Step::Field(key));
                    for (key, value) in metadata.iter().filter(|(key, _)| *key != "managedFields") {
                        self.field(shape, key, value);
                    }
                    self.path.pop();
                }
                // Not every shape of a custom kind lists them.
                ("apiVersion" | "kind", Value::String(_)) => {}
                _ => self.field(shape, key, value),
            }
        }
    }

    fn value(&mut self, shape: Shape<'v>, value: &'v Value) {
        if self.path.len() > DEPTH_MAX {
            return self.report("nested too deeply");
        }
        match (shape.form(), value) {
            // Null is a value of every form.
            (_, Value::Null) => {}
            (Form::Scalar(scalar), value) => {
                if let Some(expected) = expected(*scalar, value) {
                    self.report(&format!("expected {expected}, got {}", go::shown(value)));
                }
            }
            (Form::List(list), Value::Array(items)) => self.items(shape, list, items),
            (Form::List(_), other) => {
                self.report(&format!("expected list, got {}", go::shown(other)));
            }
            (Form::Struct(_) | Form::Map { .. } | Form::Untyped, Value::Object(fields)) => {
                for (key, value) in fields {
                    self.field(shape, key, value);
                }
            }
            (Form::Untyped, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.step(Step::Index(index), shape, item);
                }
            }
            (Form::Untyped | Form::Raw, _) => {}
            (Form::Struct(_) | Form::Map { .. }, other) => {
                self.report(&format!("expected map, got {}", go::shown(other)));
            }
        }
    }

    fn field(&mut self, shape: Shape<'v>, key: &'v str, value: &'v Value) {
        if let Some(child) = shape.child(key) {
            return self.step(Step::Field(key), child, value);
        }
        self.path.push(Step::Field(key));
        self.report("field not declared in schema");
        self.path.pop();
    }

    fn items(&mut self, shape: Shape<'v>, list: &List, items: &'v [Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if list.kind == ListKind::Atomic {
                self.step(Step::Index(index), shape.items(), item);
                continue;
            }
            let identity = match Identity::of(shape, item) {
                Ok(identity) => identity,
                // Without an identity there is no path to name what is below.
                Err(problem) => return self.report(&format!("element {index}: {problem}")),
            };
            if self.duplicates == Duplicates::Refused && !seen.insert(identity.clone()) {
                self.report(&format!("duplicate entries for key {}", identity.element()));
            }
            self.step(Step::Item(identity), shape.items(), item);
        }
    }

    fn step(&mut self, step: Step<'v>, shape: Shape<'v>, value: &'v Value) {
        self.path.push(step);
        self.value(shape, value);
        self.path.pop();
    }

    fn report(&mut self, problem: &str) {
        if self.found.len() >= MISMATCHES_MAX {
            return;
        }
        let path: String = self.path.iter().map(ToString::to_string).collect();
        let colon = if path.is_empty() { "" } else { ": " };
        self.found.push(format!("{path}{colon}{problem}"));
    }
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Item(identity) => identity.element().fmt(out),
            Self::Index(index) => {
                Element::Index(i64::try_from(*index).unwrap_or(i64::MAX)).fmt(out)
            }
        }
    }
}

/// What was expected instead of `value`, if it is not of the scalar's kind. Kinds with an
/// encoding of their own are only told apart from objects and lists, as in Kubernetes.
fn expected(scalar: Scalar, value: &Value) -> Option<&'static str> {
    let (fits, expected) = match scalar {
        Scalar::Text | Scalar::Bytes => (value.is_string(), "string"),
        Scalar::Boolean => (value.is_boolean(), "boolean"),
        Scalar::Integer | Scalar::Integer32 | Scalar::Number => {
            (value.is_number(), "numeric (int or float)")
        }
        Scalar::IntOrString
        | Scalar::Quantity
        | Scalar::Time
        | Scalar::MicroTime
        | Scalar::Duration => (!value.is_object() && !value.is_array(), "any scalar"),
    };
    (!fits).then_some(expected)
}
