//! Types in `metadata`, of objects of any kind: the schemas of custom kinds leave it out, and an API
//! server refuses what it cannot read there.

use convoy_api::Object;
use convoy_plan::{Diagnostic, World};
use serde_json::Value;

use crate::input::mistyped;

/// Labels and annotations that are not maps from text to text, and lists that are none.
pub(crate) fn check(world: &World) -> Vec<Diagnostic> {
    world.iter().flat_map(of_object).collect()
}

fn of_object(object: &Object) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for map in ["labels", "annotations"] {
        let field = format!("metadata.{map}");
        match object.metadata().get(map) {
            None | Some(Value::Null) => {}
            Some(Value::Object(entries)) => {
                let wrong = entries.iter().filter(|(_, it)| !it.is_string() && !it.is_null());
                found.extend(wrong.map(|(key, value)| {
                    let message = mistyped(value, "a string");
                    Diagnostic::error(object, format!("{field}[{key}]"), message)
                }));
            }
            Some(other) => {
                found.push(Diagnostic::error(object, field, mistyped(other, "an object")));
            }
        }
    }
    for list in ["finalizers", "ownerReferences"] {
        let value = object.metadata().get(list).unwrap_or(&Value::Null);
        if !value.is_null() && !value.is_array() {
            let field = format!("metadata.{list}");
            found.push(Diagnostic::error(object, field, mistyped(value, "a list")));
        }
    }
    found
}
