//! What a server says about a new object of one of Kubernetes' own kinds, without a server: for
//! whoever validates files.
//!
//! A server refuses an object for its first wrong type, and tells nothing else. Here every one is
//! told, and the rules of the kind are asked about the rest.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_api::object::field_path::{self, is_within};
use convoy_api::schema::{FieldError, Reason, UnknownField};
use convoy_api::text::duration::GoDuration;
use convoy_api::text::similar;
use serde_json::{Value, json};

use crate::canonical::{instant, quantity};
use crate::registry::{self, Resource};
use crate::shape::{Form, Scalar, Shape};
use crate::{form, kinds, metadata};

/// What is to say about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    pub errors: Vec<FieldError>,
    /// Fields that are dropped.
    pub unknown_fields: Vec<UnknownField>,
    /// As the server sends them with its response.
    pub warnings: Vec<String>,
}

/// One of Kubernetes' own kinds, in a version that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltInKind {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// All of them.
pub fn built_in_kinds() -> Vec<BuiltInKind> {
    let kinds = registry::builtin().iter().map(|resource| BuiltInKind {
        group: resource.group.to_string(),
        version: resource.version.to_string(),
        kind: resource.kind.to_string(),
    });
    kinds.collect()
}

/// Reviews an object as if it were created; none if its kind is not built in.
pub fn review(object: &Value) -> Option<Review> {
    let [api_version, kind] = ["apiVersion", "kind"].map(|key| object[key].as_str());
    let resource = registry::builtin().of_kind(api_version?, kind?)?;
    let mut object = object.clone();
    let given = object.clone();
    if let Value::Object(fields) = &mut object {
        fields.shift_remove("status"); // a new object has the one that the server gives it
    }
    let mut walk = Walk::default();
    walk.value(form::shape_of(resource), &mut object, "");
    let Walk { mut errors, unknown_fields } = walk;
    let more = rules(resource, &mut object);
    let more = beside(&given, &errors, more);
    errors.extend(without_wholes(more));
    let warnings = kinds::warnings_of(resource, &object);
    Some(Review { errors, unknown_fields, warnings })
}

/// Those of `more` errors that do not follow from a value that could not be read, and are not about
/// a value that the server has filled in from one at fault.
fn beside(given: &Value, errors: &[FieldError], more: Vec<FieldError>) -> Vec<FieldError> {
    let is_filled = |error: &FieldError| {
        error.reason != Reason::Required && field_path::get(given, &error.field).is_none()
    };
    let at_fault: Vec<&FieldError> =
        errors.iter().chain(more.iter().filter(|error| !is_filled(error))).collect();
    let follows = |error: &FieldError| {
        let around = error.field.rsplit_once('.').map_or("", |(around, _)| around);
        let is_copied = || at_fault.iter().any(|other| is_within(&other.field, around));
        let mut unread = errors.iter();
        is_filled(error) && !around.is_empty() && is_copied()
            || unread.any(|other| {
                is_within(&error.field, &other.field) || is_within(&other.field, &error.field)
            })
    };
    more.iter().filter(|error| !follows(error)).cloned().collect()
}

fn rules(resource: &Resource, object: &mut Value) -> Vec<FieldError> {
    if resource.namespaced && metadata::text(object, "namespace").is_empty() {
        metadata::of(object).insert("namespace".into(), json!("default"));
    }
    kinds::of(resource).default(resource, object);
    kinds::of(resource).complete_new(object);
    let mut errors =
        metadata::validate(resource, object, |name| kinds::of(resource).name_errors(object, name));
    errors.extend(kinds::validate(&kinds::Change { resource, subresource: "", object, old: None }));
    errors
}

/// A server refuses a selector for its parts and then as a whole, which says nothing new.
fn without_wholes(errors: Vec<FieldError>) -> Vec<FieldError> {
    let is_whole = |error: &FieldError| {
        let mut parts = errors.iter().filter(|other| other.field != error.field);
        error.message.ends_with("invalid label selector")
            && parts.any(|other| is_within(&other.field, &error.field))
    };
    errors.iter().filter(|error| !is_whole(error)).cloned().collect()
}

/// Checks types, and leaves behind what is of the right one.
#[derive(Default)]
struct Walk {
    errors: Vec<FieldError>,
    unknown_fields: Vec<UnknownField>,
}

impl Walk {
    fn value(&mut self, shape: Shape<'_>, value: &mut Value, path: &str) {
        let form = shape.form();
        match (form, &mut *value) {
            (_, Value::Null) | (Form::Untyped | Form::Raw, _) => {}
            (Form::Struct(_), Value::Object(_)) => self.fields(shape, value, path),
            (Form::Map { .. }, Value::Object(entries)) => {
                for (key, entry) in entries.iter_mut() {
                    if let Some(child) = shape.child(key) {
                        self.value(child, entry, &format!("{path}[{key}]"));
                    }
                }
            }
            (Form::List(_), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(shape.items(), item, &format!("{path}[{index}]"));
                }
                items.retain(|item| !item.is_null());
            }
            (Form::Scalar(of), found) if fits(*of, found) => {}
            _ => self.wrong(wanted(form), value, path),
        }
    }

    fn fields(&mut self, shape: Shape<'_>, value: &mut Value, path: &str) {
        let (Value::Object(entries), Form::Struct(of)) = (value, shape.form()) else { return };
        for (key, entry) in entries.iter_mut() {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            if let Some(child) = shape.child(key) {
                self.value(child, entry, &below);
            } else {
                let meant = similar::nearest(key, of.fields.iter().map(|field| &*field.name));
                self.unknown_fields.push(UnknownField::new(path, below, meant));
                *entry = Value::Null;
            }
        }
        entries.retain(|_, entry| !entry.is_null());
    }

    fn wrong(&mut self, wanted: &str, value: &mut Value, path: &str) {
        let got = convoy_api::object::shape_in_words(value);
        let detail = match value {
            Value::Array(_) | Value::Object(_) => {
                format!("Invalid value: want {wanted}, got {got}")
            }
            _ if wanted == TEXT => {
                format!("Invalid value: {value}: want {wanted}, got {got}; write it in quotes")
            }
            Value::String(_) => format!("Invalid value: {value}: want {wanted}"),
            _ => format!("Invalid value: {value}: want {wanted}, got {got}"),
        };
        let error = FieldError::plain(Reason::TypeInvalid, path, "");
        self.errors.push(FieldError { message: detail, ..error });
        *value = match value {
            Value::Bool(_) | Value::Number(_) if wanted == TEXT => Value::String(value.to_string()),
            _ => Value::Null,
        };
    }
}

const TEXT: &str = "a string";

fn fits(of: Scalar, value: &Value) -> bool {
    match (of, value) {
        (Scalar::Text | Scalar::IntOrString, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Number, Value::Number(_)) => true,
        (Scalar::Integer, Value::Number(number)) => number.is_i64(),
        (Scalar::Integer32 | Scalar::IntOrString, Value::Number(number)) => {
            number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
        }
        (Scalar::Quantity, Value::Number(number)) => quantity(&number.to_string()).is_some(),
        (Scalar::Quantity, Value::String(text)) => quantity(text).is_some(),
        (Scalar::Time | Scalar::MicroTime, Value::String(text)) => instant(text).is_some(),
        (Scalar::Duration, Value::String(text)) => text.parse::<GoDuration>().is_ok(),
        (Scalar::Bytes, Value::String(text)) => {
            STANDARD.decode(text.replace(['\r', '\n'], "")).is_ok()
        }
        _ => false,
    }
}

fn wanted(form: &Form) -> &'static str {
    match form {
        Form::Scalar(Scalar::Text) => TEXT,
        Form::Scalar(Scalar::Boolean) => "true or false",
        Form::Scalar(Scalar::Integer) => "an integer of 64 bits",
        Form::Scalar(Scalar::Integer32) => "an integer of 32 bits",
        Form::Scalar(Scalar::Number) => "a number",
        Form::Scalar(Scalar::IntOrString) => "an integer of 32 bits or a string",
        Form::Scalar(Scalar::Quantity) => "a quantity such as 500m, 2 or 4Gi",
        Form::Scalar(Scalar::Time | Scalar::MicroTime) => "an instant such as 2026-01-01T00:00:00Z",
        Form::Scalar(Scalar::Duration) => "a duration such as 90s or 1h30m",
        Form::Scalar(Scalar::Bytes) => "a string in base64",
        Form::List(_) => "a list",
        Form::Struct(_) | Form::Map { .. } => "an object",
        Form::Untyped | Form::Raw => "a value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(object: &Value) -> Vec<String> {
        let review = review(object).expect("a built-in kind");
        let unknown = review.unknown_fields.iter().map(UnknownField::message);
        let errors = review.errors.iter().map(|it| format!("{}: {}", it.field, it.message));
        errors.chain(unknown).collect()
    }

    #[test]
    fn one_wrong_type_hides_nothing() {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "labels": {"tier": 1}},
            "spec": {"prts": [], "type": "ClusterIp", "ports": [
                {"name": "a", "port": "http"}, {"name": "b", "port": 70_000}]}});
        let told = told(&service);
        for expected in [
            "metadata.labels[tier]: Invalid value: 1: want a string, got an integer; write it in quotes",
            "spec.ports[0].port: Invalid value: \"http\": want an integer of 32 bits",
            "spec.ports[1].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.type: Unsupported value: \"ClusterIp\"",
            "unknown field \"spec.prts\"; did you mean \"spec.ports\"?",
        ] {
            assert!(told.iter().any(|told| told.contains(expected)), "{expected}: {told:#?}");
        }
        assert_eq!(told.len(), 5, "{told:#?}");
    }

    #[test]
    fn what_a_server_accepts_is_accepted() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
        assert_eq!(told(&pod), Vec::<String>::new());
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [
            {"name": "job", "image": "job:1"}]}});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"},
            "spec": {"template": template}});
        assert_eq!(told(&job), Vec::<String>::new());
        assert_eq!(review(&json!({"apiVersion": "example.com/v1", "kind": "Pod"})), None);
    }
}
