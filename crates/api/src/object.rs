//! Objects as the JSON that arrived, and the names they go by.
//!
//! An [`Object`] keeps its JSON whole, so a field nobody here knows is never lost. Typed
//! structs are views on it ([`Object::view`]); the accessors here read the few metadata
//! fields every part of Convoy needs, without building a view.

mod body;
mod digest;
pub mod field_path;
mod key;
pub mod member;
pub mod meta;
mod reader;
pub mod view;

use std::sync::Arc;

use serde_json::Value;
use smol_str::SmolStr;

use self::body::Body;
pub use key::{CollectionKey, GroupKind, ObjectKey};
pub use meta::OwnerReference;
pub use view::ViewError;

/// One Kubernetes object: its key, the version it was written in, and its JSON.
///
/// Cloning is cheap; the JSON is shared.
#[derive(Clone, Debug)]
pub struct Object {
    key: ObjectKey,
    api_version: SmolStr,
    body: Arc<Body>,
}

/// Why a JSON value is not a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct NotAnObject {
    pub field: &'static str,
    pub message: String,
}

impl Object {
    /// Reads the key out of `raw`. The object belongs to the home cluster until
    /// [`Object::in_cluster`] says otherwise.
    pub fn from_value(raw: Value) -> Result<Self, NotAnObject> {
        if !raw.is_object() {
            let message =
                format!("expected an object with apiVersion and kind, got {}", shape(&raw));
            return Err(NotAnObject { field: "(root)", message });
        }
        let api_version = required(&raw, "apiVersion", raw.get("apiVersion"))?;
        let kind = required(&raw, "kind", raw.get("kind"))?;
        let metadata = raw.get("metadata").unwrap_or(&Value::Null);
        let name = required(&raw, "metadata.name", metadata.get("name"))?;
        let namespace = match metadata.get("namespace") {
            None | Some(Value::Null) => SmolStr::default(),
            Some(Value::String(text)) => SmolStr::new(text),
            Some(other) => {
                let message = format!("expected a string, got {}", shape(other));
                return Err(NotAnObject { field: "metadata.namespace", message });
            }
        };
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let kind = GroupKind { group: SmolStr::new(group), kind };
        let key = ObjectKey { cluster: SmolStr::default(), kind, namespace, name };
        Ok(Self { key, api_version, body: Arc::new(Body::new(raw)) })
    }

    /// The same object as a member of another cluster than the home one.
    #[must_use]
    pub fn in_cluster(mut self, cluster: &str) -> Self {
        self.key.cluster = SmolStr::new(cluster);
        self
    }

    /// The same object with other JSON, e.g. after defaulting. The identity stays.
    #[must_use]
    pub fn with_raw(&self, raw: Value) -> Self {
        Self {
            key: self.key.clone(),
            api_version: self.api_version.clone(),
            body: Arc::new(Body::new(raw)),
        }
    }

    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    pub fn kind(&self) -> &GroupKind {
        &self.key.kind
    }

    pub fn name(&self) -> &SmolStr {
        &self.key.name
    }

    /// Empty for objects of cluster scope.
    pub fn namespace(&self) -> &SmolStr {
        &self.key.namespace
    }

    /// `group/version`, or `version` alone for the core group.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The part of `apiVersion` after the slash.
    pub fn version(&self) -> &str {
        self.api_version.rsplit_once('/').map_or(&*self.api_version, |(_, version)| version)
    }

    /// Whether both are clones of one object, so that whatever was found out about one holds for
    /// the other.
    pub fn is_same(&self, other: &Self) -> bool {
        // The rest of the key follows from the JSON.
        Arc::ptr_eq(&self.body, &other.body) && self.key.cluster == other.key.cluster
    }

    pub fn raw(&self) -> &Value {
        &self.body.raw
    }

    pub fn metadata(&self) -> &Value {
        self.body.metadata()
    }

    pub fn spec(&self) -> &Value {
        self.body.spec()
    }

    pub fn status(&self) -> &Value {
        self.body.status()
    }
}

/// The digest follows from the JSON, so it is not compared.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.api_version == other.api_version && self.raw() == other.raw()
    }
}

/// The JSON type of a value, in the words Kubernetes uses.
pub fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The shape with its article: `an integer`.
pub fn shape_in_words(value: &Value) -> String {
    let shape = shape(value);
    match shape {
        "null" => shape.to_owned(),
        "integer" | "array" | "object" => format!("an {shape}"),
        _ => format!("a {shape}"),
    }
}

fn required(
    raw: &Value,
    field: &'static str,
    value: Option<&Value>,
) -> Result<SmolStr, NotAnObject> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Ok(SmolStr::new(text)),
        Some(Value::String(_)) => {
            Err(NotAnObject { field, message: "must not be empty".to_owned() })
        }
        None | Some(Value::Null) if field == "metadata.name" => {
            let message = match raw.pointer("/metadata/generateName") {
                Some(_) => "required: generateName is resolved by an API server, give a name here",
                None => "required",
            };
            Err(NotAnObject { field, message: message.to_owned() })
        }
        None | Some(Value::Null) => Err(NotAnObject { field, message: "required".to_owned() }),
        Some(other) => {
            let message = format!("expected a string, got {}", shape(other));
            Err(NotAnObject { field, message })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_key_is_read_from_the_json() {
        let raw = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"}});
        let object = Object::from_value(raw).unwrap();
        assert_eq!(object.key().to_string(), "apps/Deployment/shop/web");
        assert_eq!((object.api_version(), object.version()), ("apps/v1", "v1"));
    }

    #[test]
    fn sections_are_found_wherever_they_stand() {
        let raw = json!({"status": {"a": 1}, "kind": "Pod", "other": 0, "metadata": {"name": "p"},
            "apiVersion": "v1"});
        let object = Object::from_value(raw).unwrap();
        assert_eq!(object.status(), &json!({"a": 1}));
        assert_eq!(object.metadata(), &json!({"name": "p"}));
        assert_eq!(object.spec(), &Value::Null);
        let other = object.with_raw(json!({"spec": 7, "status": 8}));
        assert_eq!((other.spec(), other.status()), (&json!(7), &json!(8)));
        assert_eq!(object.with_raw(Value::Null).metadata(), &Value::Null);
    }

    #[test]
    fn what_is_not_an_object_says_which_field_is_wrong() {
        let cases = [
            (json!([]), "(root)"),
            (json!({"kind": "Node"}), "apiVersion"),
            (json!({"apiVersion": "v1", "kind": 7}), "kind"),
            (json!({"apiVersion": "v1", "kind": "Node"}), "metadata.name"),
            (
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": ""}}),
                "metadata.name",
            ),
            (
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": 1}}),
                "metadata.namespace",
            ),
        ];
        for (raw, field) in cases {
            assert_eq!(Object::from_value(raw.clone()).unwrap_err().field, field, "{raw}");
        }
    }
}
