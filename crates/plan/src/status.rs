//! When a status has to be written: only if it says something else than the stored one.

use serde_json::{Map, Value};

/// Whether two statuses say the same. A zero, a null and an empty list equal an absent field.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    let empty = Map::new();
    let left = left.as_object().unwrap_or(&empty);
    let right = right.as_object().unwrap_or(&empty);
    let told = |value: Option<&Value>| match value {
        None | Some(Value::Null) => false,
        Some(Value::Number(number)) => number.as_i64() != Some(0),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    };
    let differs = |key: &String| {
        let (left, right) = (left.get(key), right.get(key));
        left != right && (told(left) || told(right))
    };
    !left.keys().any(differs) && !right.keys().any(differs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_zero_may_be_left_out() {
        let cases = [
            (json!({"replicas": 1}), json!({"replicas": 1, "readyReplicas": 0}), true),
            (json!({}), json!({"terminatingReplicas": 0, "conditions": []}), true),
            (json!(null), json!({}), true),
            (json!({"replicas": 1}), json!({}), false),
            (json!({"replicas": 1}), json!({"replicas": 2}), false),
        ];
        for (left, right, same) in cases {
            assert_eq!(is_same(&left, &right), same, "{left} {right}");
        }
    }
}
