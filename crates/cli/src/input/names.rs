//! Names that are no text: `name: 123` without quotes. Without a name there is no object, and so the
//! plain value is read as the text that was meant, and the rest of the object is looked at.

use convoy_api::object::shape_in_words;
use serde_json::Value;

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

/// The value as well, unless it stands at the place of the finding and is long.
pub(crate) fn mistyped(value: &Value, wanted: &str) -> String {
    let got = shape_in_words(value);
    let advice = match value {
        Value::Bool(_) | Value::Number(_) if wanted == "a string" => "; write it in quotes",
        _ => "",
    };
    match value {
        Value::Array(_) | Value::Object(_) | Value::Null => {
            format!("Invalid value: want {wanted}, got {got}")
        }
        _ => format!("Invalid value: {value}: want {wanted}, got {got}{advice}"),
    }
}
