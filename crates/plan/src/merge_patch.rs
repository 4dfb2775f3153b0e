//! JSON merge patches (RFC 7386) between two values.

use serde_json::{Map, Value};

/// The patch that makes `old` into `new`; none if they are equal. Lists are given whole.
///
/// | old              | new              | patch            |
/// |------------------|------------------|------------------|
/// | `{a: 1, b: 2}`   | `{a: 1, b: 3}`   | `{b: 3}`         |
/// | `{a: 1, b: 2}`   | `{a: 1}`         | `{b: null}`      |
/// | `{a: [1, 2]}`    | `{a: [1]}`       | `{a: [1]}`       |
/// | `{a: {b: 1}}`    | `{a: {c: 1}}`    | `{a: {b: null, c: 1}}` |
pub fn between(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            Some(old) => patch.extend(between(old, value).map(|part| (key.clone(), part))),
            None => _ = patch.insert(key.clone(), value.clone()),
        }
    }
    Some(Value::Object(patch))
}

/// `value` as the member at `path` of an otherwise empty object. Unlike a literal with a
/// variable in it, this moves the value instead of copying it.
pub fn nested(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, name| {
        let mut object = Map::with_capacity(1);
        object.insert((*name).to_owned(), inner);
        Value::Object(object)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_put_at_the_end_of_its_path() {
        assert_eq!(nested(&["a", "b"], json!([1])), json!({"a": {"b": [1]}}));
        assert_eq!(nested(&[], json!(1)), json!(1));
    }

    #[test]
    fn the_patch_leads_from_old_to_new() {
        let cases = [
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), Some(json!({"b": 3}))),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {"c": 1}}),
                Some(json!({"a": {"b": null, "c": 1}})),
            ),
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!(null), json!({"a": 1}), Some(json!({"a": 1}))),
        ];
        for (old, new, expected) in cases {
            let patch = between(&old, &new);
            assert_eq!(patch, expected, "{old} to {new}");
            let mut patched = old.clone();
            json_patch::merge(&mut patched, &patch.unwrap_or_else(|| json!({})));
            assert_eq!(patched, new);
        }
    }
}
