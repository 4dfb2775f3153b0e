//! JSON patches, within bounds: how many operations there are, how much they copy, and how
//! deeply their result is nested.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::PatchError;

const OPERATIONS_MAX: usize = 10_000;

/// What all `copy` operations of a patch may add together, as the server's limit on bodies.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// As deep as a body may be that is read from the wire or from the store.
const DEPTH_MAX: usize = 120;

/// Reads the body of a JSON patch.
pub fn parse_json_patch(body: &[u8]) -> Result<Patch, PatchError> {
    let bad =
        |error: serde_json::Error| PatchError::BadBody(format!("error decoding patch: {error}"));
    let operations: Vec<Value> = serde_json::from_slice(body).map_err(bad)?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooMany { found: operations.len(), most: OPERATIONS_MAX });
    }
    serde_json::from_value(Value::Array(operations)).map_err(bad)
}

/// Carries out a JSON patch, all of it or nothing.
pub fn json_patch(current: &Value, patch: &Patch) -> Result<Value, PatchError> {
    let mut patched = current.clone();
    let (mut copied, mut depth_bound) = (0, depth(current));
    for operation in &patch.0 {
        let put = match operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            PatchOperation::Move(moved) => patched.pointer(moved.from.as_str()),
            PatchOperation::Copy(copy) => {
                let source = patched.pointer(copy.from.as_str());
                copied += source.map_or(0, encoded_length);
                source
            }
            PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
        };
        if copied > COPIED_BYTES_MAX {
            return Err(PatchError::Failed("the patch copies too much".into()));
        }
        let levels = operation.path().count();
        depth_bound = depth_bound.max(put.map_or(0, |value| levels + depth(value)));
        json_patch::patch_unsafe(&mut patched, std::slice::from_ref(operation))
            .map_err(|error| PatchError::Failed(error.to_string()))?;
        // Removals make the bound too high, so it is measured before it counts.
        if depth_bound > DEPTH_MAX {
            depth_bound = depth(&patched);
        }
        if depth_bound > DEPTH_MAX {
            return Err(PatchError::Failed("the patched object is nested too deeply".into()));
        }
    }
    Ok(patched)
}

fn encoded_length(value: &Value) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(entries) => entries.values().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply(current: &Value, patch: &Value) -> Result<Value, PatchError> {
        json_patch(current, &parse_json_patch(patch.to_string().as_bytes())?)
    }

    #[test]
    fn errors_say_whether_the_patch_or_the_object_is_at_fault() {
        let object = json!({"metadata": {"name": "a"}});
        let failing = [
            json!([{"op": "test", "path": "/metadata/name", "value": "b"}]),
            json!([{"op": "remove", "path": "/spec"}]),
            json!([{"op": "replace", "path": "/spec", "value": 1}]),
            json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}]),
        ];
        for patch in failing {
            assert!(matches!(apply(&object, &patch), Err(PatchError::Failed(_))), "{patch}");
        }
        for patch in [json!({}), json!([{"op": "jump", "path": "/a"}]), json!([{"op": "add"}])] {
            assert!(matches!(apply(&object, &patch), Err(PatchError::BadBody(_))), "{patch}");
        }
        let many = vec![json!({"op": "test", "path": "", "value": object}); OPERATIONS_MAX + 1];
        assert!(matches!(apply(&object, &json!(many)), Err(PatchError::TooMany { .. })));
    }

    #[test]
    fn copies_are_bounded_in_size_and_depth() {
        let large = json!({"a": "x".repeat(1024 * 1024)});
        let copies = |count: usize| -> Vec<Value> {
            let copy = |i| json!({"op": "copy", "from": "/a", "path": format!("/b{i}")});
            (0..count).map(copy).collect()
        };
        assert!(apply(&large, &json!(copies(2))).is_ok());
        assert!(matches!(apply(&large, &json!(copies(3))), Err(PatchError::Failed(_))));
        let nest = json!({"op": "copy", "from": "/a", "path": "/a/b"});
        let nested = apply(&json!({"a": {}}), &json!(vec![nest; 1_000]));
        assert!(matches!(nested, Err(PatchError::Failed(_))));
    }
}
