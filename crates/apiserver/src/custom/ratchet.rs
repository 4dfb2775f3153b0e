//! Ratcheting: rules that came after an object was stored hold for what a write changes, and
//! leave alone what it does not.

use convoy_api::schema::{FieldError, Reason};
use serde_json::Value;

use super::CustomForm;
use crate::shape::{Form, List, ListKind, Shape, untyped};

/// The errors that the write has made, those at places where `object` differs from `old`, and
/// the others.
pub(super) fn keep_new(
    form: &CustomForm,
    errors: Vec<FieldError>,
    object: &Value,
    old: &Value,
) -> (Vec<FieldError>, Vec<FieldError>) {
    let distant = distant_rules(form);
    errors.into_iter().partition(|error| {
        error.unratcheted || is_about_rules(error) || is_changed(form, error, &distant, object, old)
    })
}

/// That rules could not be checked: about no place.
fn is_about_rules(error: &FieldError) -> bool {
    error.detached && error.field.is_empty()
}

fn is_changed(
    form: &CustomForm,
    error: &FieldError,
    distant: &[String],
    object: &Value,
    old: &Value,
) -> bool {
    if distant.iter().any(|message| error.message.contains(message.as_str())) {
        return without_metadata(object) != without_metadata(old);
    }
    // A missing field is an error of the object that lacks it.
    let place = match error.reason {
        Reason::Required => parent(&error.field),
        _ => &error.field,
    };
    let (now, before) = pair(form.shape(), object, Some(old), place);
    now != before
}

/// What rules say that report their error at another place than the one they look at.
fn distant_rules(form: &CustomForm) -> Vec<String> {
    fn collect(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
                for rule in rules.filter(|rule| rule["fieldPath"].is_string()) {
                    let texts = [&rule["message"], &rule["rule"]];
                    found.extend(texts.into_iter().filter_map(Value::as_str).map(str::to_owned));
                }
                fields.values().for_each(|value| collect(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&form.open_api(), &mut found);
    found
}

fn without_metadata(object: &Value) -> Vec<(&String, &Value)> {
    let fields = object.as_object().into_iter().flatten();
    let mut parts: Vec<_> = fields.filter(|(name, _)| *name != "metadata").collect();
    parts.sort_by_key(|(name, _)| *name);
    parts
}

fn parent(path: &str) -> &str {
    match (path.rfind('.'), path.ends_with(']').then(|| path.rfind('[')).flatten()) {
        (_, Some(at)) | (Some(at), None) => &path[..at],
        (None, None) => "",
    }
}

/// The values at `spec.items[0].labels[a.b/c]` of an object and of the one before it; the whole
/// objects at an empty path. None if there is none, or if the path cannot be followed.
///
/// An item of a list is the one before it that has the same keys. Lists without keys have no
/// items that could be told apart, unless the lists are equal.
fn pair<'v>(
    shape: Shape<'_>,
    object: &'v Value,
    old: Option<&'v Value>,
    path: &str,
) -> (Option<&'v Value>, Option<&'v Value>) {
    if path.is_empty() || Some(object) == old {
        return (Some(object), old);
    }
    let Some((step, rest)) = next_step(object, path) else { return (None, None) };
    match step {
        Step::Index(index) => {
            let Some(item) = object.get(index) else { return (None, None) };
            let same = old.and_then(Value::as_array).and_then(|old| match shape.form() {
                Form::List(List { kind: ListKind::Map(keys), .. }) => {
                    let agree = |other: &Value, key: &str| other.get(key) == item.get(key);
                    old.iter().find(|other| keys.iter().all(|key| agree(other, key)))
                }
                _ => None,
            });
            pair(shape.items(), item, same, rest)
        }
        Step::Field(name) => {
            let Some(value) = object.get(name) else { return (None, None) };
            let before = old.and_then(|old| old.get(name));
            match shape.child(name) {
                Some(child) => pair(child, value, before, rest),
                None => pair(untyped(), value, before, rest),
            }
        }
    }
}

enum Step<'p> {
    Field(&'p str),
    Index(usize),
}

/// The first step of a path into a value, and what is left of the path.
fn next_step<'p>(value: &Value, path: &'p str) -> Option<(Step<'p>, &'p str)> {
    if let Some(inner) = path.strip_prefix('[') {
        let (key, rest) = inner.split_once(']')?;
        return Some(match value {
            Value::Array(_) => (Step::Index(key.parse().ok()?), rest),
            _ => (Step::Field(key), rest),
        });
    }
    let name = path.strip_prefix('.').unwrap_or(path);
    let end = name.find(['.', '[']).unwrap_or(name.len());
    // A field's name may hold dots; the longest that is there is meant.
    let known = value.as_object()?.keys().filter(|key| {
        name.strip_prefix(key.as_str())
            .is_some_and(|tail| tail.is_empty() || tail.starts_with(['.', '[']))
    });
    let end = known.map(String::len).max().unwrap_or(end);
    Some((Step::Field(&name[..end]), &name[end..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn remaining(old: &Value, object: &Value) -> Vec<String> {
        let form = CustomForm::of(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "required": ["name"],
        "x-kubernetes-validations": [
            {"rule": "self.size != 7", "message": "seven"},
            {"rule": "self.size < self.limit", "message": "too big", "fieldPath": ".name"}],
        "properties": {
            "name": {"type": "string", "maxLength": 3},
            "size": {"type": "integer", "maximum": 100},
            "limit": {"type": "integer", "default": 1000},
            "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "parts": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id"], "items": {"type": "object", "properties": {
                    "id": {"type": "string"}, "size": {"type": "integer", "maximum": 5}}}},
        }}}}));
        let values = form.schema.validate_values(object, Some(old));
        let (mut errors, _) = keep_new(&form, values, object, old);
        let rules = form.schema.validate_rules(object, Some(old), &errors);
        errors.extend(keep_new(&form, rules, object, old).0);
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn only_what_a_write_changes_must_keep_to_the_rules() {
        let old = json!({"spec": {"name": "long name", "size": 200, "limit": 1, "kinds": ["a", "x"],
                "parts": [{"id": "a", "size": 8}]}});
        let with = |field: &str, value: Value| {
            let mut object = old.clone();
            object["spec"][field] = value;
            object
        };
        let cases: [(&str, Value, &[&str]); 5] = [
            ("nothing changes", old.clone(), &[]),
            ("another field changes, and its rule", with("limit", json!(2)), &["spec.name"]),
            ("the field itself changes", with("size", json!(300)), &["spec.size", "spec.name"]),
            ("a list changes", with("kinds", json!(["a", "x", "b"])), &["spec.kinds[1]", ""]),
            (
                "an item changes",
                with("parts", json!([{"id": "b", "size": 9}, {"id": "a", "size": 8}])),
                &["spec.parts[0].size", "spec.name"],
            ),
        ];
        for (name, object, expected) in cases {
            assert_eq!(remaining(&old, &object), expected, "{name}");
        }
    }

    #[test]
    fn rules_hold_where_their_object_changes() {
        let old = json!({"spec": {"name": "a", "size": 7, "limit": 5}});
        assert!(remaining(&old, &old).is_empty());
        let mut object = old.clone();
        object["spec"]["limit"] = json!(6);
        assert_eq!(remaining(&old, &object), ["spec", "spec.name"]);
    }

    #[test]
    fn rules_about_a_change_hold_though_nothing_changes() {
        let rules = |rule: &str| json!([{"rule": rule}]);
        let form = CustomForm::of(&json!({"type": "object", "properties": {
        "name": {"type": "string", "x-kubernetes-validations": rules("self != oldSelf")},
        "size": {"type": "integer", "x-kubernetes-validations": rules("self < 5")},
        "part": {"type": "object", "x-kubernetes-validations": rules("self.none.size() > 1"),
            "properties": {"none": {"type": "string"}}},
        "parts": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"], "items": {"type": "object", "properties": {
                "id": {"type": "string"},
                "at": {"type": "string", "x-kubernetes-validations": rules("self != oldSelf")},
            }}}}}));
        let object = json!({"name": "a", "size": 7, "part": {}, "parts": [{"id": "x", "at": "y"}]});
        let errors = form.schema.validate_rules(&object, Some(&object), &[]);
        let (new, tolerated) = keep_new(&form, errors, &object, &object);
        let fields = |errors: Vec<FieldError>| -> Vec<String> {
            errors.into_iter().map(|error| error.field).collect()
        };
        assert_eq!(fields(new), ["name", "part", "parts[0].at"]);
        assert_eq!(fields(tolerated), ["size"]);
    }

    #[test]
    fn a_missing_field_is_its_objects_error() {
        let old = json!({"spec": {"size": 1, "limit": 5}});
        assert!(remaining(&old, &old).is_empty());
        let mut object = old.clone();
        object["spec"]["size"] = json!(2);
        assert_eq!(remaining(&old, &object), ["spec.name", ""]);
    }

    #[test]
    fn places_are_found_by_their_paths() {
        let object = json!({"spec": {"a.b": {"c": [1, {"d": 2}]}, "labels": {"x.y/z": 3}}});
        for (path, expected) in [
            ("spec.a.b.c[1].d", Some(json!(2))),
            ("spec.labels[x.y/z]", Some(json!(3))),
            ("spec.a.b.c[7]", None),
            ("spec.none", None),
            ("spec[", None),
            ("", Some(object.clone())),
        ] {
            assert_eq!(pair(untyped(), &object, None, path).0, expected.as_ref(), "{path}");
        }
        assert_eq!((parent("spec.a[3]"), parent("spec.a"), parent("spec")), ("spec.a", "spec", ""));
    }
}
