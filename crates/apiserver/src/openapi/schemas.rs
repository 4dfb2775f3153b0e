//! Schemas of built-in kinds: what the types' own library says about them, with what the table
//! of types knows about lists and patches put over it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{enums, library, required};
use crate::registry::{Resource, split_api_version};
use crate::shape::{Form, ListKind};
use crate::types::{self, Field, Struct, Type};

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";
const PREFIX: &str = "#/components/schemas/";

/// The schemas of one document, as they are gathered.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    types: BTreeMap<String, Value>,
    lists: Vec<(String, Value)>,
}

impl Schemas {
    /// What operations of all kinds mention.
    pub(super) fn add_common(&mut self) {
        for name in [OBJECT_META, LIST_META, STATUS, DELETE_OPTIONS, PATCH] {
            self.add_type(name);
        }
    }

    /// A kind, with everything that it consists of; nothing for unknown kinds.
    pub(super) fn add_kind(&mut self, api_version: &str, kind: &str) {
        if let Some(name) = schema_name(api_version, kind) {
            self.add_type(&name);
        }
    }

    fn add_type(&mut self, name: &str) {
        let mut open = vec![name.to_owned()];
        while let Some(name) = open.pop() {
            if self.types.contains_key(&name) {
                continue;
            }
            if let Some(schema) = library::schema(&name) {
                add_references(&schema, &mut open);
                self.types.insert(name, schema);
            }
        }
    }

    /// The list of a kind whose schema has the given name.
    pub(super) fn add_list(&mut self, of: &str, resource: &Resource) {
        let mut list = list_schema(of, resource);
        list["description"] = json!(format!("A list of {}", resource.kind));
        self.lists.push((format!("{of}List"), list));
    }

    /// All schemas, by name.
    pub(super) fn finish(self, group: &str, version: &str) -> Map<String, Value> {
        let mut schemas = self.types;
        for (name, schema) in &mut schemas {
            tidy(schema);
            settle_special(name, schema);
            overlay(name, schema);
        }
        for (api_version, kind) in types::table().kinds() {
            let schema = schema_name(api_version, kind).and_then(|name| schemas.get_mut(&name));
            if let Some(schema) = schema {
                let (group, version) = split_api_version(api_version);
                schema[GROUP_VERSION_KIND] = json!([kind_entry(group, version, kind)]);
            }
        }
        for (name, kind) in [(DELETE_OPTIONS, "DeleteOptions"), (WATCH_EVENT, "WatchEvent")] {
            if let Some(schema) = schemas.get_mut(name) {
                let mut entries = vec![kind_entry("", "v1", kind)];
                if (group, version) != ("", "v1") {
                    entries.push(kind_entry(group, version, kind));
                }
                schema[GROUP_VERSION_KIND] = Value::Array(entries);
            }
        }
        if let Some(status) = schemas.get_mut(STATUS) {
            status[GROUP_VERSION_KIND] = json!([kind_entry("", "v1", "Status")]);
        }
        schemas.extend(self.lists);
        schemas.into_iter().collect()
    }
}

/// Adds the names of the types that a schema refers to.
fn add_references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| add_references(item, names)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(target) if key == "$ref" => {
                        names.extend(target.strip_prefix(PREFIX).map(str::to_owned));
                    }
                    _ => add_references(value, names),
                }
            }
        }
        _ => {}
    }
}

fn kind_entry(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "kind": kind, "version": version})
}

/// The name under which a built-in kind is published.
pub(super) fn schema_name(api_version: &str, kind: &str) -> Option<String> {
    match types::shape_of(api_version, kind)?.form() {
        Form::Struct(of) => Some(of.name.to_string()),
        _ => None,
    }
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

/// A list of what the schema of the given name describes.
pub(super) fn list_schema(of: &str, resource: &Resource) -> Value {
    let text = |description: &str| json!({"description": description, "type": "string"});
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text("The version of the kind that this list is written in."),
            "items": {"description": "The objects.", "type": "array", "items": reference(of)},
            "kind": text("The kind of this list."),
            "metadata": {
                "description": "When the list was made, and where the next page begins.",
                "allOf": [reference(LIST_META)],
            },
        },
        GROUP_VERSION_KIND: [
            kind_entry(&resource.group, &resource.version, &resource.list_kind)
        ],
    })
}

/// Beside a reference nothing else counts, so one that is described becomes a conjunction.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(fields) => {
            for value in fields.values_mut() {
                tidy(value);
            }
            if fields.len() > 1
                && let Some(target @ Value::String(_)) = fields.get("$ref").cloned()
            {
                fields.shift_remove("$ref");
                fields.insert("allOf".into(), json!([{"$ref": target}]));
            }
        }
        _ => {}
    }
}

/// Values that are written in several ways.
fn settle_special(name: &str, schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    let alternatives = match name.rsplit('.').next() {
        Some("IntOrString") => {
            fields.insert("format".into(), json!("int-or-string"));
            json!([{"type": "integer"}, {"type": "string"}])
        }
        Some("Quantity") => json!([{"type": "string"}, {"type": "number"}]),
        Some(
            "JSON"
            | "JSONSchemaPropsOrArray"
            | "JSONSchemaPropsOrBool"
            | "JSONSchemaPropsOrStringArray",
        ) => {
            fields.retain(|key, _| key == "description");
            return;
        }
        _ => return,
    };
    fields.shift_remove("type");
    fields.shift_remove("x-kubernetes-int-or-string");
    fields.insert("oneOf".into(), alternatives);
}

/// What server-side apply and strategic merges go by.
fn overlay(name: &str, schema: &mut Value) {
    // `io.k8s.api.core.v1.PodSpec` is `core.v1.PodSpec` in the table.
    let Some((start, _)) = name.rmatch_indices('.').nth(2) else { return };
    let name = &name[start + 1..];
    if let Value::Object(fields) = schema {
        required::settle(name, fields);
    }
    let Some(of) = types::table().find(name) else { return };
    if of.atomic {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        overlay_fields(of, properties);
        enums::overlay(name, properties);
    }
}

fn overlay_fields(of: &Struct, properties: &mut Map<String, Value>) {
    for field in &of.fields {
        match (field.name, &field.of) {
            (Some(name), _) => {
                if let Some(Value::Object(property)) = properties.get_mut(name) {
                    overlay_field(field, property);
                }
            }
            (None, Type::Struct(embedded)) => {
                overlay_fields(types::table().get(*embedded), properties);
            }
            (None, _) => {}
        }
    }
}

fn overlay_field(field: &Field, property: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Value| property.insert(key.to_owned(), value);
    if let Some(default) = field.default.and_then(|text| serde_json::from_str(text).ok()) {
        put("default", default);
    }
    match (&field.of, &field.list, field.atomic) {
        (Type::List(_), ListKind::Map(keys), _) => {
            put("x-kubernetes-list-map-keys", json!(keys));
            put("x-kubernetes-list-type", json!("map"));
        }
        (Type::List(_), ListKind::Set, _) => {
            put("x-kubernetes-list-type", json!("set"));
        }
        (Type::List(_), ListKind::Atomic, _) => {
            put("x-kubernetes-list-type", json!("atomic"));
        }
        (_, _, Some(atomic)) => {
            put("x-kubernetes-map-type", json!(if atomic { "atomic" } else { "granular" }));
        }
        _ => {}
    }
    let patch = &field.patch;
    if let Some(key) = patch.merge.as_ref().filter(|key| !key.is_empty()) {
        put("x-kubernetes-patch-merge-key", json!(key));
    }
    let words = [
        (patch.merge.is_some(), "merge"),
        (patch.replace, "replace"),
        (patch.retain_keys, "retainKeys"),
    ];
    let words: Vec<&str> = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
    if !words.is_empty() {
        put("x-kubernetes-patch-strategy", json!(words.join(",")));
    }
}
