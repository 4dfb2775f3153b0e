//! Content hashes as the API writes them: SHA-256 over compact JSON in Go's spelling.

use std::fmt::Write as _;

use convoy_api::k8s_openapi::ByteString;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Lower-case hex of the hash over `value` as it stands; the caller has put it in order.
pub(crate) fn hex(value: &Value) -> String {
    // Go escapes these inside texts; in JSON they occur nowhere else.
    let text = value.to_string();
    let text = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        write!(hex, "{byte:02x}").expect("a String takes whatever is written");
    }
    hex
}

/// The same for a field of bytes, which JSON carries in base64.
pub(crate) fn base64_hex(value: &Value) -> Value {
    let bytes = ByteString(hex(value).into_bytes());
    serde_json::to_value(bytes).expect("bytes are always representable")
}

/// `value` with the keys of every object in order, as maps are written.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// `value` with the fields of objects in `order`, and optional fields that are empty left out.
/// Maps whose keys are data, named in `maps`, are sorted instead.
pub(crate) fn ordered(value: &Value, order: &[&str], maps: &[&str]) -> Value {
    match value {
        Value::Object(fields) => {
            let rank = |name: &str| order.iter().position(|known| *known == name);
            let mut entries: Vec<(&String, &Value)> =
                fields.iter().filter(|(_, value)| !is_empty(value)).collect();
            entries.sort_by_key(|(name, _)| (rank(name).unwrap_or(order.len()), *name));
            let entries = entries.into_iter().map(|(name, value)| {
                let is_map = maps.contains(&name.as_str());
                let value = if is_map { sorted(value) } else { ordered(value, order, maps) };
                (name.clone(), value)
            });
            Value::Object(entries.collect::<Map<String, Value>>())
        }
        Value::Array(items) => items.iter().map(|item| ordered(item, order, maps)).collect(),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_is_over_gos_spelling() {
        assert_eq!(hex(&json!({"a": "<&>"})), hex_of(r#"{"a":"\u003c\u0026\u003e"}"#));
        assert_eq!(hex(&Value::Null), hex_of("null"));
    }

    fn hex_of(text: &str) -> String {
        Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        })
    }
}
