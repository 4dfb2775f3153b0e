//! Ratcheting: rules that came after an object was stored hold for what a write changes, and
//! leave alone what it does not.

use convoy_api::schema::{FieldError, Reason};
use serde_json::Value;

use super::CustomForm;

/// The errors that the write has made: those at places where `object` differs from `old`.
pub(super) fn keep_new(
    form: &CustomForm,
    errors: Vec<FieldError>,
    object: &Value,
    old: &Value,
) -> Vec<FieldError> {
    let blocks = |error: &FieldError| !is_about_rules(error);
    let before = errors.iter().filter(|error| blocks(error)).count();
    let distant = distant_rules(form);
    let mut kept: Vec<FieldError> = errors
        .into_iter()
        .filter(|error| is_about_rules(error) || is_changed(error, &distant, object, old))
        .collect();
    // That rules were skipped is said because of errors that block them.
    if before > 0 && !kept.iter().any(blocks) {
        kept.clear();
    }
    kept
}

/// That rules could not be checked: about no place.
fn is_about_rules(error: &FieldError) -> bool {
    error.detached && error.field.is_empty()
}

fn is_changed(error: &FieldError, distant: &[String], object: &Value, old: &Value) -> bool {
    if distant.iter().any(|message| error.message.contains(message.as_str())) {
        return without_metadata(object) != without_metadata(old);
    }
    // A missing field is an error of the object that lacks it.
    let place = match error.reason {
        Reason::Required => parent(&error.field),
        _ => &error.field,
    };
    at(object, place) != at(old, place)
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

/// The value at `spec.items[0].labels[a.b/c]`; the whole object at an empty path. None if there
/// is none, or if the path cannot be followed.
fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (key, after) = inner.split_once(']')?;
            value = match value {
                Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
                value => value.get(key)?,
            };
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            // A field's name may hold dots; the longest that is there is meant.
            let known = value.as_object()?.keys().filter(|key| {
                name.strip_prefix(key.as_str())
                    .is_some_and(|tail| tail.is_empty() || tail.starts_with(['.', '[']))
            });
            let end = known.map(String::len).max().unwrap_or(end);
            value = value.get(&name[..end])?;
            rest = &name[end..];
        }
    }
    Some(value)
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
        }}}}));
        let errors = form.schema.validate(object, Some(old));
        keep_new(&form, errors, object, old).into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn only_what_a_write_changes_must_keep_to_the_rules() {
        let old =
            json!({"spec": {"name": "long name", "size": 200, "limit": 1, "kinds": ["a", "x"]}});
        let with = |field: &str, value: Value| {
            let mut object = old.clone();
            object["spec"][field] = value;
            object
        };
        let cases: [(&str, Value, &[&str]); 5] = [
            ("nothing changes", old.clone(), &[]),
            ("another field changes", with("limit", json!(2)), &[]),
            ("the field itself changes", with("size", json!(300)), &["spec.size", ""]),
            ("an item changes", with("kinds", json!(["z", "x"])), &["spec.kinds[0]", ""]),
            ("a list grows, its old items stay", with("kinds", json!(["a", "x", "b"])), &[]),
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
            assert_eq!(at(&object, path), expected.as_ref(), "{path}");
        }
        assert_eq!((parent("spec.a[3]"), parent("spec.a"), parent("spec")), ("spec.a", "spec", ""));
    }
}
