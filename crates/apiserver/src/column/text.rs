//! Values as text.

use serde_json::Value;

/// A scalar as text, without quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
