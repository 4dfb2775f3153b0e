//! The merge patch (RFC 7386) that leads from one document to another.

use serde_json::{Map, Value};

/// What has to be merged into `from` so that it reads as `to`; none if it does already. Lists
/// are replaced whole. A null inside `to` cannot be expressed and reads as absent.
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return Some(to.clone()) };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in to {
        let change = match from.get(key) {
            Some(old) => merge_patch(old, value),
            None => Some(value.clone()),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_patch_leads_from_one_to_the_other() {
        let from = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1], "f": 5});
        let to = json!({"a": 1, "b": {"c": 4}, "e": [2], "g": {"h": 6}});
        let patch = merge_patch(&from, &to).unwrap();
        assert_eq!(patch, json!({"b": {"c": 4, "d": null}, "e": [2], "f": null, "g": {"h": 6}}));
        let mut merged = from;
        json_patch::merge(&mut merged, &patch);
        assert_eq!(merged, to);
        assert_eq!(merge_patch(&to, &to), None);
    }
}
