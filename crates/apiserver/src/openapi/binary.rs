//! The older form of OpenAPI in protobuf, which is the only one that client-go asks for. kubectl
//! validates lists (`kind: List`) by it. Definitions are given whole; paths, which nobody reads
//! there, are left out.

use serde_json::{Map, Value};

/// The media type that clients accept.
pub(super) const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The media type of the response; strict parsers reject the one that clients accept.
pub(super) const MEDIA: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document as bytes, from its JSON.
pub(super) fn encoded(document: &Value) -> Vec<u8> {
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    let mut whole = Message::default();
    whole.text(1, &document["swagger"]);
    whole.message(2, &info);
    whole.message(8, &Message::default());
    whole.message(9, &named(&document["definitions"]));
    whole.0
}

/// Schemas by name: definitions, and properties.
fn named(schemas: &Value) -> Message {
    let mut all = Message::default();
    for (name, value) in schemas.as_object().into_iter().flatten() {
        let mut entry = Message::default();
        entry.bytes(1, name.as_bytes());
        entry.message(2, &schema(value));
        all.message(1, &entry);
    }
    all
}

fn schema(value: &Value) -> Message {
    let mut out = Message::default();
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    for (tag, name) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description")] {
        out.text(tag, &value[name]);
    }
    for required in value["required"].as_array().into_iter().flatten() {
        out.text(19, required);
    }
    match fields.get("additionalProperties") {
        Some(Value::Bool(allowed)) => out.message(21, &Message(vec![2 << 3, u8::from(*allowed)])),
        Some(inner) => {
            let mut item = Message::default();
            item.message(1, &schema(inner));
            out.message(21, &item);
        }
        None => {}
    }
    if fields.contains_key("type") {
        let mut kind = Message::default();
        kind.text(1, &value["type"]);
        out.message(22, &kind);
    }
    if let Some(items) = fields.get("items") {
        let mut item = Message::default();
        item.message(1, &schema(items));
        out.message(23, &item);
    }
    for part in value["allOf"].as_array().into_iter().flatten() {
        out.message(24, &schema(part));
    }
    if fields.contains_key("properties") {
        out.message(25, &named(&value["properties"]));
    }
    for (name, given) in fields.iter().filter(|(name, _)| name.starts_with("x-")) {
        let mut any = Message::default();
        any.bytes(2, given.to_string().as_bytes()); // JSON is YAML
        let mut entry = Message::default();
        entry.bytes(1, name.as_bytes());
        entry.message(2, &any);
        out.message(31, &entry);
    }
    out
}

/// Fields, one after the other.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// A string, where there is one.
    fn text(&mut self, tag: u32, value: &Value) {
        if let Some(text) = value.as_str() {
            self.bytes(tag, text.as_bytes());
        }
    }

    fn message(&mut self, tag: u32, inner: &Self) {
        self.bytes(tag, &inner.0);
    }

    fn bytes(&mut self, tag: u32, bytes: &[u8]) {
        self.varint(u64::from(tag << 3 | 2));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits at a time, the lowest first; all but the last are marked.
    fn varint(&mut self, mut number: u64) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                return self.0.push(low & 0x7f);
            }
            self.0.push(low | 0x80);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_their_numbers_and_lengths() {
        let document = json!({"swagger": "2.0", "info": {"title": "K", "version": "v1"}, "paths": {},
            "definitions": {"A": {"type": "object", "properties": {"b": {"$ref": "#/B"}}}}});
        let want = [
            &b"\x0a\x032.0"[..],
            b"\x12\x07\x0a\x01K\x12\x02v1",
            b"\x42\x00",
            b"\x4a\x21\x0a\x1f\x0a\x01A\x12\x1a",
            b"\xb2\x01\x08\x0a\x06object",
            b"\xca\x01\x0c\x0a\x0a\x0a\x01b\x12\x05\x0a\x03#/B",
        ];
        assert_eq!(encoded(&document), want.concat());
    }

    #[test]
    fn long_values_have_long_lengths() {
        let mut message = Message::default();
        message.bytes(31, &[7; 300]);
        assert_eq!(message.0[..4], [0xfa, 0x01, 0xac, 0x02]);
        assert_eq!(message.0.len(), 304);
    }
}
