//! JSON patches, within bounds: how many operations there are, how much they copy, and how
//! deeply their result is nested.

use convoy_api::size::SizeBudget;
use json_patch::{Patch, PatchErrorKind, PatchOperation};
use serde_json::Value;

use super::PatchError;

const OPERATIONS_MAX: usize = 10_000;

/// What all `copy` operations of a patch may add together, as the server's limit on bodies.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A patch of many large moves would hold up everybody else.
const VISITED_MAX: usize = 10_000_000;

/// As deep as a body may be that is read from the wire or from the store.
const DEPTH_MAX: usize = 120;

/// Reads the body of a JSON patch.
pub fn parse_json_patch(body: &[u8]) -> Result<Patch, PatchError> {
    json_patch_of(super::parse(body)?)
}

/// A JSON patch from the list of its operations.
pub fn json_patch_of(operations: Value) -> Result<Patch, PatchError> {
    let operations = match operations {
        Value::Array(operations) => operations,
        other => {
            let shape = convoy_api::object::shape(&other);
            return Err(PatchError::BadBody(format!(
                "error decoding patch: json: cannot unmarshal {shape} into Go value of type []handlers.jsonPatchOp"
            )));
        }
    };
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooMany { found: operations.len(), most: OPERATIONS_MAX });
    }
    // Each is JSON; what it means is found out when it is carried out.
    serde_json::from_value(Value::Array(operations))
        .map_err(|error| PatchError::Failed(error.to_string()))
}

/// Carries out a JSON patch, all of it or nothing.
pub fn json_patch(current: &Value, patch: &Patch) -> Result<Value, PatchError> {
    let mut patched = current.clone();
    let mut bounds = Bounds { depth: 0, copies: SizeBudget::new(COPIED_BYTES_MAX), visited: 0 };
    bounds.depth = bounds.depth_of(current);
    for operation in &patch.0 {
        bounds.check(operation, &patched)?;
        if let Some((place, value)) = replaced_field(operation, &mut patched) {
            *place = value;
            continue;
        }
        json_patch::patch_unsafe(&mut patched, std::slice::from_ref(operation)).map_err(
            |error| match error.kind {
                PatchErrorKind::TestFailed => PatchError::TestFailed(error.to_string()),
                _ => PatchError::Failed(error.to_string()),
            },
        )?;
    }
    Ok(patched)
}

/// Replacing a field of an object sets it, whether it was there or not: Kubernetes is more
/// lenient than the RFC.
fn replaced_field<'o>(
    operation: &PatchOperation,
    object: &'o mut Value,
) -> Option<(&'o mut Value, Value)> {
    let PatchOperation::Replace(replace) = operation else { return None };
    let (parent, field) = replace.path.as_str().rsplit_once('/')?;
    let Value::Object(fields) = object.pointer_mut(parent)? else { return None };
    let field = field.replace("~1", "/").replace("~0", "~");
    Some((fields.entry(field).or_insert(Value::Null), replace.value.clone()))
}

struct Bounds {
    /// No value is nested more deeply than this.
    depth: usize,
    copies: SizeBudget,
    /// Values that were looked at to know how deep they are.
    visited: usize,
}

impl Bounds {
    /// Before an operation: whether its result stays within the bounds.
    fn check(&mut self, operation: &PatchOperation, object: &Value) -> Result<(), PatchError> {
        let put = match operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            PatchOperation::Move(moved) => object.pointer(moved.from.as_str()),
            PatchOperation::Copy(copy) => object.pointer(copy.from.as_str()),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
        };
        let Some(put) = put else { return Ok(()) };
        self.depth = self.depth.max(operation.path().count() + self.depth_of(put));
        if let PatchOperation::Copy(_) = operation {
            // Asked before the copy is made.
            self.copies.charge_value(put).map_err(|error| PatchError::CopiesTooMuch {
                copied: error.wanted,
                most: error.limit,
            })?;
        }
        let refused = if self.depth > DEPTH_MAX {
            "the patched object is nested too deeply"
        } else if self.visited > VISITED_MAX {
            "the patch moves too much"
        } else {
            return Ok(());
        };
        Err(PatchError::Failed(refused.into()))
    }

    fn depth_of(&mut self, value: &Value) -> usize {
        self.visited += 1;
        let below = match value {
            Value::Array(items) => items.iter().map(|item| self.depth_of(item)).max(),
            Value::Object(entries) => entries.values().map(|entry| self.depth_of(entry)).max(),
            _ => return 0,
        };
        1 + below.unwrap_or(0)
    }
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
        let untrue = json!([{"op": "test", "path": "/metadata/name", "value": "b"}]);
        assert!(matches!(apply(&object, &untrue), Err(PatchError::TestFailed(_))));
        let failing = [
            json!([{"op": "remove", "path": "/spec"}]),
            json!([{"op": "replace", "path": "/spec/replicas", "value": 1}]),
            json!([{"op": "jump", "path": "/a"}]),
            json!([{"op": "add"}]),
            json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}]),
        ];
        for patch in failing {
            assert!(matches!(apply(&object, &patch), Err(PatchError::Failed(_))), "{patch}");
        }
        assert!(matches!(apply(&object, &json!({})), Err(PatchError::BadBody(_))));
        let set = json!([{"op": "replace", "path": "/spec", "value": 1}]);
        assert_eq!(apply(&object, &set).unwrap()["spec"], 1);
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
        let refused = apply(&large, &json!(copies(3)));
        assert!(matches!(refused, Err(PatchError::CopiesTooMuch { .. })));
        let nest = json!({"op": "copy", "from": "/a", "path": "/a/b"});
        let nested = apply(&json!({"a": {}}), &json!(vec![nest; 1_000]));
        assert!(matches!(nested, Err(PatchError::Failed(_))));
    }
}
