//! Members of JSON objects. Reading them is most of what deciding costs, so it has one place.

use jiff::Timestamp;
use serde_json::Value;

/// Up to so many members are looked through: keys of another length are passed over without
/// reading them, which is quicker than hashing the name and following the table.
const SCANNED_MAX: usize = 12;

/// A member of a JSON object; none where `value` is no object.
pub fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let Value::Object(members) = value else { return None };
    if members.len() > SCANNED_MAX {
        return members.get(name);
    }
    members.iter().find(|(key, _)| *key == name).map(|(_, found)| found)
}

/// A member of a JSON object; null where there is none.
pub fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    member(value, name).unwrap_or(&Value::Null)
}

/// A text member of a JSON object; empty where there is none.
pub fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    member(value, name).and_then(Value::as_str).unwrap_or_default()
}

/// The entries of a list member; none where there is no list.
pub fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    member(value, name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether two values are equal, whatever order their members are written in. What was
/// written by the same hand has the same order, and is compared without looking anything up.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            if left.keys().eq(right.keys()) {
                left.values().zip(right.values()).all(|(left, right)| same(left, right))
            } else {
                left == right
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => left == right,
    }
}

/// Reads an RFC 3339 instant out of a field.
pub fn timestamp(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn members_are_found_in_small_and_in_large_objects() {
        for size in [0, 1, SCANNED_MAX, SCANNED_MAX + 1, 100] {
            let members: Map<String, Value> =
                (0..size).map(|at| (format!("key-{at}"), json!(at))).collect();
            let value = Value::Object(members);
            for at in 0..size {
                assert_eq!(member(&value, &format!("key-{at}")), Some(&json!(at)), "{size}");
            }
            assert_eq!(member(&value, "key-x"), None, "{size}");
        }
        assert_eq!(member(&json!(["a"]), "a"), None);
    }

    #[test]
    fn values_are_the_same_in_any_order_of_members() {
        let one = json!({"a": [1, {"b": 2, "c": null}], "d": "x"});
        let cases = [
            (json!({"a": [1, {"b": 2, "c": null}], "d": "x"}), true),
            (json!({"d": "x", "a": [1, {"c": null, "b": 2}]}), true),
            (json!({"a": [1, {"b": 2}], "d": "x"}), false),
            (json!({"a": [1, {"b": 2, "c": null}, 3], "d": "x"}), false),
            (json!({"a": [1, {"b": 3, "c": null}], "d": "x"}), false),
            (json!([]), false),
        ];
        for (other, expected) in cases {
            assert_eq!(same(&one, &other), expected, "{other}");
            assert_eq!(one == other, expected, "{other}");
        }
    }
}
