//! The JSON of an object, shared by every component that has it in its cache.

use std::ops::Deref;
use std::sync::Arc;

use convoy_api::Object;
use convoy_api::object::member::{field, text};
use serde_json::Value;

/// The JSON of an object, read and never changed.
#[derive(Clone, Debug)]
pub enum SharedObject {
    /// As it came over the wire.
    Json(Arc<Value>),
    /// The object of a simulated server in this process.
    Object(Object),
}

impl Deref for SharedObject {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Json(value) => value,
            Self::Object(object) => object.raw(),
        }
    }
}

impl From<Value> for SharedObject {
    fn from(value: Value) -> Self {
        Self::Json(Arc::new(value))
    }
}

impl From<SharedObject> for Value {
    fn from(known: SharedObject) -> Self {
        match known {
            SharedObject::Json(value) => Arc::unwrap_or_clone(value),
            SharedObject::Object(object) => object.raw().clone(),
        }
    }
}

impl PartialEq for SharedObject {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl SharedObject {
    /// Whether `self` tells more than `before`, which has the same name. An echo does not, nor
    /// does a memory: of the same object, or of one that had the name before it.
    pub(crate) fn is_newer(&self, before: &Self) -> bool {
        match (self.version(), before.version()) {
            (0, 0) => true,
            (news, known) => news > known,
        }
    }

    /// The version as a number, which grows from write to write; 0 if it says nothing.
    pub(crate) fn version(&self) -> u64 {
        version(self).parse().unwrap_or(0)
    }
}

/// The version that an object stands at.
pub(crate) fn version(object: &Value) -> &str {
    text(field(object, "metadata"), "resourceVersion")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_later_version_is_newer() {
        let at =
            |version: &str| SharedObject::from(json!({"metadata": {"resourceVersion": version}}));
        assert!(at("10").is_newer(&at("9")));
        assert!(!at("9").is_newer(&at("9")), "an echo");
        assert!(!at("8").is_newer(&at("9")));
        assert!(at("").is_newer(&at("")), "versions that say nothing");
    }
}
