//! Schemas as types of CEL: what a rule may say of `self` before there is any.

use serde_json::Value;

use super::typed::escaped;
use crate::cel::{RESERVED, Type};

/// What `self` is in the rules of a node; none where its schema does not say. A resource shows
/// its kind and name whatever its schema declares.
pub(super) fn self_type(schema: &Value, is_resource: bool) -> Option<Type> {
    of(schema, is_resource, "selfType")
}

fn of(schema: &Value, is_resource: bool, name: &str) -> Option<Type> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(Type::Dyn);
    }
    Some(match schema["type"].as_str().unwrap_or_default() {
        "array" => Type::list(below(&schema["items"], &format!("{name}.@idx"))?),
        "object" if schema["additionalProperties"].is_object() => {
            let value = below(&schema["additionalProperties"], &format!("{name}.@elem"))?;
            Type::map(Type::String, value)
        }
        "object" => object(schema, is_resource, name),
        "string" => match schema["format"].as_str().unwrap_or_default() {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" | "date-time" => Type::Timestamp,
            _ => Type::String,
        },
        "boolean" => Type::Bool,
        "number" => Type::Double,
        "integer" => Type::Int,
        _ => return None,
    })
}

fn below(schema: &Value, name: &str) -> Option<Type> {
    of(schema, schema["x-kubernetes-embedded-resource"] == true, name)
}

fn object(schema: &Value, is_resource: bool, name: &str) -> Type {
    let mut fields: Vec<(String, Type)> = Vec::new();
    for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
        let Some(of) = below(schema, &format!("{name}.{field}")) else { continue };
        if RESERVED.contains(&field.as_str()) {
            fields.push((field.clone(), of.clone()));
        }
        fields.extend(escaped(field).map(|escaped| (escaped, of)));
    }
    if is_resource {
        fields.retain(|(field, _)| !["apiVersion", "kind", "metadata"].contains(&field.as_str()));
        let metadata = ["name", "generateName"].map(|field| (field.to_owned(), Type::String));
        fields.push(("apiVersion".to_owned(), Type::String));
        fields.push(("kind".to_owned(), Type::String));
        let metadata = Type::object(&format!("{name}.metadata"), metadata);
        fields.push(("metadata".to_owned(), metadata));
    }
    Type::object(name, fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_schema_has_its_type_or_none() {
        let text = json!({"type": "string"});
        for (schema, want) in [
            (json!({"type": "integer", "nullable": true}), Some("int")),
            (json!({"type": "string", "enum": ["a"]}), Some("string")),
            (json!({"type": "string", "format": "date"}), Some("timestamp")),
            (json!({"type": "array", "items": {"type": "number"}}), Some("list(double)")),
            (json!({"type": "object", "additionalProperties": text}), Some("map(string, string)")),
            (json!({"x-kubernetes-int-or-string": true}), Some("dyn")),
            (json!({"x-kubernetes-preserve-unknown-fields": true}), None),
            (
                json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}}),
                None,
            ),
        ] {
            let of = self_type(&schema, false).map(|of| of.to_string());
            assert_eq!(of.as_deref(), want, "{schema}");
        }
    }

    #[test]
    fn objects_show_what_rules_can_spell_and_resources_their_kind_and_name() {
        let schema = json!({"type": "object", "properties": {
            "namespace": {"type": "string"}, "x-y": {"type": "string"}, "any": {},
            "metadata": {"type": "object", "properties": {"labels": {"type": "string"}}},
        }});
        let fields = |is_resource| match self_type(&schema, is_resource) {
            Some(Type::Object(object)) => object.fields.keys().cloned().collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(fields(false), ["__namespace__", "metadata", "namespace", "x__dash__y"]);
        assert_eq!(
            fields(true),
            ["__namespace__", "apiVersion", "kind", "metadata", "namespace", "x__dash__y"]
        );
        let Some(Type::Object(object)) = self_type(&schema, true) else { unreachable!() };
        let Type::Object(metadata) = &object.fields["metadata"] else { unreachable!() };
        assert_eq!(metadata.fields.keys().collect::<Vec<_>>(), ["generateName", "name"]);
    }
}
