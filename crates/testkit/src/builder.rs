//! The one builder that all kinds share: metadata by name, everything else by path.

use convoy_api::Object;
use serde_json::{Map, Value, json};

/// The time at which tests take place.
pub const NOW: &str = "2026-01-01T00:00:00Z";

/// An object under construction.
#[derive(Clone, Debug)]
pub struct Builder(Value);

/// An object of any kind, with a uid, a resource version and a generation as a server gives them.
pub fn object(api_version: &str, kind: &str, name: &str) -> Builder {
    Builder(json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "uid": format!("uid-{kind}-{name}").to_lowercase(),
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": "2025-12-01T00:00:00Z",
        },
    }))
}

/// A node that is ready.
pub fn node(name: &str) -> Builder {
    object("v1", "Node", name)
        .with("/status/conditions", json!([{"type": "Ready", "status": "True"}]))
}

/// The object as a reader parses it from text. The parts of a built object are scattered in
/// memory, which would distort a benchmark.
pub fn parsed(object: &Object) -> Object {
    let raw = serde_json::from_str(&object.raw().to_string()).expect("JSON reads back");
    Object::from_value(raw).expect("it was an object before")
}

impl Builder {
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.with("/metadata/namespace", json!(namespace))
    }

    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.entry("labels", key, value)
    }

    #[must_use]
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.entry("annotations", key, value)
    }

    #[must_use]
    pub fn created_at(self, instant: &str) -> Self {
        self.with("/metadata/creationTimestamp", json!(instant))
    }

    #[must_use]
    pub fn spec(self, spec: Value) -> Self {
        self.with("/spec", spec)
    }

    #[must_use]
    pub fn status(self, status: Value) -> Self {
        self.with("/status", status)
    }

    /// Puts `value` at a JSON pointer, making the objects on the way.
    #[must_use]
    pub fn with(mut self, pointer: &str, value: Value) -> Self {
        let mut at = &mut self.0;
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let map = at.as_object_mut().expect("pointers go through objects only");
            at = map.entry(part).or_insert_with(|| Value::Object(Map::new()));
        }
        *at = value;
        self
    }

    pub fn json(self) -> Value {
        self.0
    }

    pub fn build(self) -> Object {
        Object::from_value(self.0).expect("builders make whole objects")
    }

    fn entry(self, map: &str, key: &str, value: &str) -> Self {
        let key = key.replace('~', "~0").replace('/', "~1");
        self.with(&format!("/metadata/{map}/{key}"), json!(value))
    }
}
