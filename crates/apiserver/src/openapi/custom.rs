//! Schemas of custom kinds: as their definitions say, with what every object has put in.

use serde_json::{Map, Value, json};

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
        let text = |description: &str| json!({"description": description, "type": "string"});
        let about = "The version of the kind that this object is written in.";
        properties.insert("apiVersion".into(), text(about));
        properties.insert("kind".into(), text("The kind of this object."));
        let metadata = json!({
            "description": "What every object has: its name, its labels, its owners.",
            "allOf": [reference(OBJECT_META)],
        });
        properties.insert("metadata".into(), metadata);
    }
    let kind = json!([{
        "group": resource.group, "kind": resource.kind, "version": resource.version,
    }]);
    schema.insert("x-kubernetes-group-version-kind".into(), kind);
    Value::Object(schema)
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
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        let mut schemas = Map::new();
        add_schemas(&widgets, &open_api, &mut schemas);
        let foo = &schemas["dev.clux.v1.Foo"];
        assert_eq!(foo["description"], "A foo.");
        assert_eq!(foo["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"], true);
        assert!(foo["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
        assert_eq!(foo["x-kubernetes-group-version-kind"][0]["group"], "clux.dev");
        let items = &schemas["dev.clux.v1.FooList"]["properties"]["items"]["items"];
        assert_eq!(items["$ref"], "#/components/schemas/dev.clux.v1.Foo");
    }
}
