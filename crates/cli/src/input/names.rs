//! Names that are no text: `name: 123` without quotes. Without a name there is no object, and so the
//! plain value is read as the text that was meant, and the rest of the object is looked at.

use serde_json::Value;

use crate::finding::metadata::mistyped;

/// A name that was read as text.
#[derive(Debug)]
pub(super) struct Mended {
    /// `apiVersion/Kind/namespace/name`.
    pub(super) object: String,
    pub(super) field: &'static str,
    pub(super) message: String,
}

/// Writes plain values of `metadata.name` and `metadata.namespace` as text.
pub(super) fn mend(object: &mut Value) -> Vec<Mended> {
    let fields =
        [("metadata.name", "/metadata/name"), ("metadata.namespace", "/metadata/namespace")];
    let mut found = Vec::new();
    for (field, pointer) in fields {
        let Some(value) = object.pointer_mut(pointer) else { continue };
        if matches!(value, Value::Bool(_) | Value::Number(_)) {
            let message = mistyped(value, "a string");
            *value = Value::String(value.to_string());
            found.push(Mended { object: String::new(), field, message });
        }
    }
    let text = |pointer: &str| {
        let value = object.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let name =
        ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(text).join("/");
    for mended in &mut found {
        mended.object.clone_from(&name);
    }
    found
}
