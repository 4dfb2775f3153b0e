//! Objects as bytes: how they are stored, and how the stored bytes become responses.
//!
//! The stored form has no resourceVersion, so that a write which changes nothing is found by
//! comparing bytes. Answers are the stored bytes with the revision put in at a known place;
//! nothing is parsed or encoded to serve a get, a list or a watch.

use std::cell::RefCell;

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::object_meta::Entry;

/// The parts of an object that a response shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View<'v> {
    /// The apiVersion to show instead of the stored one.
    pub api_version: Option<&'v str>,
    /// Without kind and apiVersion, as the items of built-in lists are.
    pub bare: bool,
}

/// What a thread keeps of the room in which it wrote a large object.
const SCRATCH_MAX: usize = 64 << 10;

/// The version that an object is stored in, as it is written there.
pub fn api_version(entry: &Entry) -> &[u8] {
    let layout = &entry.meta.layout;
    &entry.value[layout.version_from as usize..layout.version_to as usize]
}

/// Appends a stored object, with its revision, to a response.
pub fn write_entry(out: &mut Vec<u8>, entry: &Entry, revision: u64, view: View<'_>) {
    let layout = &entry.meta.layout;
    let bytes: &[u8] = &entry.value;
    let metadata = layout.metadata as usize;
    if metadata == 0 {
        out.extend_from_slice(bytes);
        return;
    }
    if view.bare && layout.item != 0 {
        out.push(b'{');
        out.extend_from_slice(&bytes[layout.item as usize..metadata]);
    } else if let Some(api_version) = view.api_version.filter(|_| layout.version_to != 0) {
        out.extend_from_slice(&bytes[..layout.version_from as usize]);
        out.extend_from_slice(api_version.as_bytes());
        out.extend_from_slice(&bytes[layout.version_to as usize..metadata]);
    } else {
        out.extend_from_slice(&bytes[..metadata]);
    }
    out.extend_from_slice(b"\"resourceVersion\":\"");
    out.extend_from_slice(revision.to_string().as_bytes());
    out.extend_from_slice(b"\",");
    out.extend_from_slice(&bytes[metadata..]);
}

/// The bytes to store: exactly as many as there are, since most objects stay for long.
pub fn stored(object: &Value) -> Bytes {
    thread_local! {
        /// Where objects are written before their length is known.
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        serde_json::to_writer(&mut *scratch, &Stored(object))
            .expect("values have text for keys, and memory takes what is written");
        let bytes = Bytes::copy_from_slice(scratch);
        scratch.shrink_to(SCRATCH_MAX);
        bytes
    })
}

/// An object without its resourceVersion.
struct Stored<'o>(&'o Value);

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.0 else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in fields {
            match value {
                Value::Object(metadata) if name == "metadata" => {
                    map.serialize_entry(name, &StoredMetadata(metadata))?;
                }
                value => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

struct StoredMetadata<'o>(&'o serde_json::Map<String, Value>);

impl Serialize for StoredMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter(|(name, _)| *name != "resourceVersion"))
    }
}

/// The object of an entry, with its resourceVersion.
pub fn read_entry(entry: &Entry) -> Value {
    let mut object = serde_json::from_slice(&entry.value).unwrap_or_else(|error| {
        tracing::error!(key = %entry.key, %error, "could not parse a stored object");
        Value::Object(serde_json::Map::new())
    });
    set_revision(&mut object, entry.modified.0);
    object
}

pub fn set_revision(object: &mut Value, revision: u64) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".into(), Value::String(revision.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use convoy_store::{MemoryBackend, Settings, Shelf, Transaction};
    use serde_json::json;

    use super::*;
    use crate::object_meta::Store;

    fn entry(object: &Value) -> Arc<Entry> {
        let store = Store::open(MemoryBackend, Settings::default()).unwrap();
        let key = Shelf::new("", "things").key("", "t");
        let written = store.write(Transaction::create(key, stored(object))).unwrap();
        Arc::clone(&written.entries[0])
    }

    fn shown(object: &Value, view: View<'_>) -> String {
        let mut out = Vec::new();
        write_entry(&mut out, &entry(object), 7, view);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_revision_is_put_into_the_metadata() {
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a\"}{", "resourceVersion": "3"}, "data": {"metadata": "{"}});
        assert_eq!(
            shown(&map, View::default()),
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a\"}{"},"data":{"metadata":"{"}}"#
        );
        assert_eq!(
            shown(&map, View { bare: true, ..View::default() }),
            r#"{"metadata":{"resourceVersion":"7","name":"a\"}{"},"data":{"metadata":"{"}}"#
        );
    }

    #[test]
    fn custom_objects_are_shown_in_another_version() {
        let widget = json!({"apiVersion": "example.com/v1", "data": {"kind": "x", "metadata": {}},
            "kind": "Widget", "metadata": {"name": "w"}, "spec": {}});
        let view = View { api_version: Some("example.com/v2beta1"), bare: false };
        assert_eq!(
            shown(&widget, view),
            r#"{"apiVersion":"example.com/v2beta1","data":{"kind":"x","metadata":{}},"kind":"Widget","metadata":{"resourceVersion":"7","name":"w"},"spec":{}}"#
        );
    }
}
