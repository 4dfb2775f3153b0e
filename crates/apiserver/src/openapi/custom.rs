//! Schemas of custom kinds: as their definitions say, with what every object has put in.

use serde_json::{Map, Value, json};

use super::library;
use super::schemas::{list_schema, reference};
use crate::registry::Resource;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// `dev.clux.v1.Foo` for a kind in the group `clux.dev`.
pub(super) fn schema_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').rev().collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// Adds the kind and its list.
pub(super) fn add_schemas(resource: &Resource, open_api: &Value, schemas: &mut Map<String, Value>) {
    let name = schema_name(&resource.group, &resource.version, &resource.kind);
    let mut list = list_schema(&name, resource);
    if let Some(fields) = list.as_object_mut() {
        fields.insert("description".into(), json!(format!("A list of {}", resource.kind)));
    }
    let list_name = schema_name(&resource.group, &resource.version, &resource.list_kind);
    schemas.insert(name, whole(resource, open_api));
    schemas.insert(list_name, list);
}

fn whole(resource: &Resource, open_api: &Value) -> Value {
    let mut schema = match open_api {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| json!("object"));
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.extend(type_and_metadata());
        properties.values_mut().for_each(add_embedded);
    }
    let kind = json!([{
        "group": resource.group, "kind": resource.kind, "version": resource.version,
    }]);
    schema.insert("x-kubernetes-group-version-kind".into(), kind);
    Value::Object(schema)
}

/// The properties that every object has, described as in a built-in kind.
fn type_and_metadata() -> Map<String, Value> {
    let described = library::schema("io.k8s.api.core.v1.ConfigMap").unwrap_or_default();
    let about = |name: &str| described["properties"][name]["description"].clone();
    let text = |name: &str| json!({"description": about(name), "type": "string"});
    let metadata = json!({"description": about("metadata"), "allOf": [reference(OBJECT_META)]});
    let all = [("apiVersion", text("apiVersion")), ("kind", text("kind")), ("metadata", metadata)];
    all.map(|(name, schema)| (name.to_owned(), schema)).into_iter().collect()
}

/// Adds to objects within an object what every object has.
fn add_embedded(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(add_embedded);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(below) {
            add_embedded(schema);
        }
    }
    if fields.get("x-kubernetes-embedded-resource") != Some(&Value::Bool(true)) {
        return;
    }
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.extend(type_and_metadata());
    }
    let required = fields.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(json!(name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::builtin;

    #[test]
    fn a_definition_describes_its_kind() {
        let pods = builtin().get("", "v1", "pods").unwrap();
        let widgets = Resource {
            group: "clux.dev".into(),
            kind: "Foo".into(),
            list_kind: "FooList".into(),
            ..Resource::clone(pods)
        };
        let open_api = json!({"type": "object", "description": "A foo.", "properties": {
            "metadata": {"type": "object"},
            "whole": {"type": "object", "x-kubernetes-embedded-resource": true},
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        let mut schemas = Map::new();
        add_schemas(&widgets, &open_api, &mut schemas);
        let foo = &schemas["dev.clux.v1.Foo"];
        assert_eq!(foo["description"], "A foo.");
        assert_eq!(foo["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"], true);
        assert!(foo["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
        let about = foo["properties"]["apiVersion"]["description"].as_str().unwrap();
        assert!(about.starts_with("APIVersion defines"), "{about}");
        let whole = &foo["properties"]["whole"];
        assert_eq!(whole["required"], json!(["kind", "apiVersion"]));
        assert_eq!(whole["properties"]["metadata"], foo["properties"]["metadata"]);
        assert_eq!(foo["x-kubernetes-group-version-kind"][0]["group"], "clux.dev");
        let items = &schemas["dev.clux.v1.FooList"]["properties"]["items"]["items"];
        assert_eq!(items["$ref"], "#/components/schemas/dev.clux.v1.Foo");
    }
}
