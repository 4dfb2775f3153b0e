//! The one spelling of an object: what Go's encoder writes after Go's decoder has read it.
//!
//! Equal objects have equal bytes, so a write that changes nothing is seen as such, and clients
//! find the fields that they were promised. Built-in kinds come in the order in which their
//! types declare the fields, without what `omitempty` leaves out and with what it does not;
//! custom kinds come with sorted keys, and nothing is left out.

mod scalar;

use serde_json::{Map, Value};

use crate::shape::InsteadOfSchema;
use crate::shape::{Form, Scalar, Shape, Struct, untyped};

pub(crate) use scalar::{instant, micros, quantity, seconds};

/// Brings an object into its one spelling. Values of a wrong type stay as they are; finding
/// those is the decoder's part.
pub fn canonicalise(shape: Shape<'_>, value: &mut Value) {
    match shape.form() {
        Form::Struct(of) if of.is_builtin() => settle(shape, value),
        _ => sort(shape, value),
    }
}

/// Custom kinds: only metadata have a type of Go's.
fn sort(shape: Shape<'_>, value: &mut Value) {
    match value {
        Value::Object(entries) => {
            for (key, entry) in entries.iter_mut() {
                let child = shape.child(key).unwrap_or(untyped());
                if matches!(child.form(), Form::Struct(of) if of.is_builtin()) {
                    settle(child, entry);
                }
                sort(child, entry);
            }
            entries.sort_keys();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| sort(shape.items(), item)),
        _ => {}
    }
}

fn settle(shape: Shape<'_>, value: &mut Value) {
    match (shape.form(), &mut *value) {
        (Form::Struct(of), Value::Object(entries)) => {
            let given = std::mem::take(entries);
            *entries = fields(shape, of, given);
        }
        (Form::Map { .. }, Value::Object(entries)) => {
            for (key, entry) in entries.iter_mut() {
                settle_item(shape.child(key).unwrap_or(untyped()), entry);
            }
            entries.sort_keys();
        }
        (Form::List(_), Value::Array(items)) => {
            for item in items {
                settle_item(shape.items(), item);
            }
        }
        (Form::Scalar(of), _) => scalar::settle(*of, value),
        (Form::Untyped | Form::Raw, _) => settle_schema(shape, value),
        _ => {}
    }
}

/// In a list or map Go has a zero value where the JSON had null.
fn settle_item(shape: Shape<'_>, value: &mut Value) {
    if value.is_null() {
        *value = zero(shape);
    } else {
        settle(shape, value);
    }
}

/// JSON without a type is kept byte for byte; a schema, or a list of them, has one.
fn settle_schema(shape: Shape<'_>, value: &mut Value) {
    let Some((schema, instead)) = shape.alternative() else { return };
    match value {
        Value::Object(_) => settle(schema, value),
        Value::Bool(_) if instead == InsteadOfSchema::Boolean => {}
        Value::Array(items) if !items.is_empty() && instead == InsteadOfSchema::Texts => {}
        Value::Array(items) if !items.is_empty() && instead == InsteadOfSchema::Schemas => {
            for item in items {
                settle_item(schema, item);
            }
        }
        _ => *value = Value::Null,
    }
}

fn fields(shape: Shape<'_>, of: &Struct, mut given: Map<String, Value>) -> Map<String, Value> {
    let mut settled = Map::new();
    for field in &of.fields {
        let form = shape.of(field);
        let mut value = given.get_mut(field.name.as_str()).map_or(Value::Null, Value::take);
        if value.is_null() && !field.required {
            continue;
        }
        settle(form, &mut value);
        let is_absent = value.is_null();
        if is_absent && field.required && !field.pointer {
            value = zero(form);
        }
        let is_left_out =
            !field.required && (is_absent || !field.pointer && is_empty(form, &value));
        if !is_left_out {
            settled.insert(field.name.to_string(), value);
        }
    }
    if of.open {
        let known = |key: &String| of.fields.iter().any(|field| field.name == key.as_str());
        settled.extend(given.into_iter().filter(|(key, _)| !known(key)));
    }
    settled
}

/// What Go encodes for a variable of this type that nobody has set.
fn zero(shape: Shape<'_>) -> Value {
    match shape.form() {
        Form::Scalar(of) => match of {
            Scalar::Text => Value::from(""),
            Scalar::Boolean => Value::Bool(false),
            Scalar::Integer | Scalar::Integer32 | Scalar::Number | Scalar::IntOrString => 0.into(),
            Scalar::Quantity => Value::from("0"),
            Scalar::Duration => Value::from("0s"),
            Scalar::Time | Scalar::MicroTime | Scalar::Bytes => Value::Null,
        },
        Form::Struct(of) => Value::Object(fields(shape, of, Map::new())),
        Form::Untyped | Form::Raw | Form::Map { .. } | Form::List(_) => Value::Null,
    }
}

/// What `omitempty` leaves out of a settled value.
fn is_empty(shape: Shape<'_>, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => match shape.form() {
            Form::Struct(_) => *value == zero(shape),
            _ => entries.is_empty(),
        },
    }
}

#[cfg(test)]
mod tests;
