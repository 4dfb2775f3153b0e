//! The form of a custom kind, from the `openAPIV3Schema` of its definition.

use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::shapes::add_object_meta;
use crate::shape::{Field, Form, List, ListKind, PatchStrategy, Scalar, ShapeId, Shapes, Struct};

/// The forms of a schema, which is known to be structural, and that of the whole object.
pub fn from_schema(schema: &Value) -> (Shapes, ShapeId) {
    let mut builder = Builder { shapes: Shapes::default(), metadata: None };
    let root = builder.form(schema, true);
    (builder.shapes, root)
}

struct Builder {
    shapes: Shapes,
    /// Metadata are of Kubernetes' own type, whatever a schema says about them.
    metadata: Option<ShapeId>,
}

impl Builder {
    fn form(&mut self, schema: &Value, is_root: bool) -> ShapeId {
        let is_set = |extension: &str| schema[extension] == Value::Bool(true);
        let open = is_set("x-kubernetes-preserve-unknown-fields");
        let is_resource = is_root || is_set("x-kubernetes-embedded-resource");
        let form = match schema["type"].as_str() {
            _ if is_set("x-kubernetes-int-or-string") => Form::Scalar(Scalar::IntOrString),
            Some("string") => Form::Scalar(Scalar::Text),
            Some("boolean") => Form::Scalar(Scalar::Boolean),
            Some("integer") => Form::Scalar(Scalar::Integer),
            Some("number") => Form::Scalar(Scalar::Number),
            Some("array") => self.list(schema),
            Some("object") => self.object(schema, open, is_resource),
            _ if is_resource || schema["properties"].is_object() => {
                self.object(schema, open, is_resource)
            }
            _ => Form::Untyped,
        };
        self.shapes.add(form)
    }

    fn list(&mut self, schema: &Value) -> Form {
        let items = self.form(&schema["items"], false);
        let kind = match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => ListKind::Set,
            Some("map") => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                ListKind::Map(keys.filter_map(Value::as_str).map(SmolStr::new).collect())
            }
            _ => ListKind::Atomic,
        };
        Form::List(List { items, kind })
    }

    fn object(&mut self, schema: &Value, open: bool, is_resource: bool) -> Form {
        let atomic = schema["x-kubernetes-map-type"] == "atomic";
        let values = &schema["additionalProperties"];
        let properties = schema["properties"].as_object();
        if properties.is_none_or(Map::is_empty) && !is_resource {
            match values {
                Value::Object(_) | Value::Bool(true) => {
                    let values = self.form(values, false);
                    return Form::Map { values, atomic };
                }
                _ => {}
            }
        }
        let mut fields = Vec::new();
        if is_resource {
            self.add_type_fields(&mut fields);
        }
        for (name, property) in properties.into_iter().flatten() {
            if fields.iter().any(|field: &Field| field.name == name.as_str()) {
                continue;
            }
            let shape = self.form(property, false);
            let default = property.get("default").cloned();
            fields.push(Field { default, ..field(name, shape) });
        }
        Form::Struct(Struct { name: SmolStr::default(), fields, atomic, open })
    }

    fn add_type_fields(&mut self, fields: &mut Vec<Field>) {
        let text = self.shapes.add(Form::Scalar(Scalar::Text));
        let metadata = match self.metadata {
            Some(known) => known,
            None => *self.metadata.insert(add_object_meta(&mut self.shapes)),
        };
        fields.push(field("apiVersion", text));
        fields.push(field("kind", text));
        fields.push(field("metadata", metadata));
    }
}

/// A field of a custom kind: nothing is filled in, and an empty value is a value.
fn field(name: &str, shape: ShapeId) -> Field {
    Field {
        name: SmolStr::new(name),
        shape,
        required: false,
        pointer: true,
        patch: PatchStrategy::default(),
        default: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"type": "object", "properties": {
                "port": {"x-kubernetes-int-or-string": true},
                "any": {"x-kubernetes-preserve-unknown-fields": true},
                "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"a": {"type": "integer", "default": 3}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"},
                    "x-kubernetes-map-type": "atomic"},
                "child": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true},
                "items": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "port"],
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "names": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "string"}},
            }}
        }})
    }

    #[test]
    fn extensions_decide_the_form() {
        let (shapes, root) = from_schema(&schema());
        let root = shapes.get(root);
        let spec = root.child("spec").unwrap();
        let form = |name: &str| spec.child(name).unwrap().form();
        assert!(matches!(form("port"), Form::Scalar(Scalar::IntOrString)));
        assert!(matches!(form("any"), Form::Untyped));
        assert!(matches!(form("half"), Form::Struct(of) if of.open));
        assert!(matches!(form("labels"), Form::Map { atomic: true, .. }));
        assert!(matches!(form("names"), Form::List(list) if list.kind == ListKind::Set));
        let keys = ListKind::Map(vec!["name".into(), "port".into()]);
        assert!(matches!(form("items"), Form::List(list) if list.kind == keys));
        assert!(spec.child("unknown").is_none());
        assert_eq!(spec.child("half").unwrap().field("a").unwrap().default, Some(json!(3)));
    }

    #[test]
    fn metadata_have_kubernetes_own_type_wherever_an_object_is() {
        let (shapes, root) = from_schema(&schema());
        let root = shapes.get(root);
        let inner = root.child("spec").and_then(|spec| spec.child("child")).unwrap();
        for place in [root, inner] {
            let owners = place.child("metadata").and_then(|it| it.child("ownerReferences"));
            let keys = ListKind::Map(vec!["uid".into()]);
            assert!(matches!(owners.unwrap().form(), Form::List(list) if list.kind == keys));
        }
        assert!(inner.child("data").is_some());
    }
}
