//! OpenAPI in its older form, for clients that know no other: the same documents, all in one
//! and spelled differently.

use serde_json::{Map, Value, json};

use super::document;
use crate::registry::Registry;

const OPEN: &str = "x-kubernetes-preserve-unknown-fields";
const KIND: &str = "x-kubernetes-group-version-kind";

/// The whole API.
pub(super) fn whole(registry: &Registry) -> Value {
    let mut paths = Map::new();
    let mut definitions = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let document = document::of(registry, group, version);
            for (path, item) in fields(&document["paths"]) {
                paths.insert(path.clone(), path_item(item));
            }
            for (name, schema) in fields(&document["components"]["schemas"]) {
                definitions.entry(name.clone()).or_insert_with(|| definition(schema));
            }
        }
    }
    definitions.sort_keys();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": format!("v1.{}.0", crate::version::MINOR)},
        "paths": paths,
        "definitions": definitions,
    })
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn path_item(item: &Value) -> Value {
    let rewrite = |(method, operation): (&String, &Value)| {
        let value = match method.as_str() {
            "parameters" => parameters(operation),
            _ => self::operation(operation),
        };
        (method.clone(), value)
    };
    fields(item).map(rewrite).collect()
}

/// Bodies are parameters, and media types stand beside the schemas instead of around them.
fn operation(operation: &Value) -> Value {
    let mut out = Map::new();
    let mut given = Vec::new();
    for (key, value) in fields(operation) {
        match key.as_str() {
            "requestBody" => {
                let media: Vec<&String> =
                    fields(&value["content"]).map(|(media, _)| media).collect();
                out.insert("consumes".into(), json!(media));
                given.push(json!({
                    "name": "body", "in": "body", "required": value["required"] == true,
                    "schema": first_schema(&value["content"]),
                }));
            }
            "parameters" => {
                if let Value::Array(more) = parameters(value) {
                    given.extend(more);
                }
            }
            "responses" => {
                let produces = fields(value).next().map(|(_, answer)| &answer["content"]);
                let media: Vec<&String> =
                    produces.into_iter().flat_map(fields).map(|(media, _)| media).collect();
                out.insert("produces".into(), json!(media));
                out.insert("responses".into(), fields(value).map(response).collect());
            }
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    if !given.is_empty() {
        out.insert("parameters".into(), Value::Array(given));
    }
    Value::Object(out)
}

fn response((code, answer): (&String, &Value)) -> (String, Value) {
    let mut out = json!({"description": answer["description"]});
    if answer.get("content").is_some() {
        out["schema"] = first_schema(&answer["content"]);
    }
    (code.clone(), out)
}

fn first_schema(content: &Value) -> Value {
    fields(content).next().map(|(_, media)| rewritten(&media["schema"])).unwrap_or_default()
}

fn parameters(list: &Value) -> Value {
    let rewrite = |parameter: &Value| {
        let mut out = Map::new();
        for (key, value) in fields(parameter) {
            match key.as_str() {
                "schema" => {
                    out.extend(fields(value).map(|(key, value)| (key.clone(), value.clone())));
                }
                _ => {
                    out.insert(key.clone(), value.clone());
                }
            }
        }
        Value::Object(out)
    };
    list.as_array().into_iter().flatten().map(rewrite).collect()
}

/// A named schema. Of a kind that may have any field nothing else is said: old clients would
/// take what is said for all that there is.
fn definition(schema: &Value) -> Value {
    match schema.get(KIND) {
        Some(kind) if schema[OPEN] == true => json!({"type": "object", KIND: kind}),
        _ => rewritten(schema),
    }
}

/// A schema in the older form: other references, no alternatives.
fn rewritten(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(rewritten).collect(),
        Value::Object(fields) => rewritten_object(fields),
        other => other.clone(),
    }
}

fn rewritten_object(schema: &Map<String, Value>) -> Value {
    let is = |word: &str| schema.get(word) == Some(&Value::Bool(true));
    // Old clients refuse unknown fields and other values than the one type as soon as they see
    // properties, items or a type.
    let (is_open, is_nullable) = (is(OPEN), is("nullable"));
    let is_bare = is_open || is_nullable;
    let mut out = Map::new();
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("$ref", Value::String(target)) => {
                let target = target.replace("#/components/schemas/", "#/definitions/");
                out.insert("$ref".into(), Value::String(target));
            }
            // A described reference: the description stands beside it here.
            ("allOf", Value::Array(parts))
                if parts.len() == 1 && parts[0].get("$ref").is_some() =>
            {
                if let Value::Object(reference) = rewritten(&parts[0]) {
                    out.extend(reference);
                }
            }
            ("oneOf", Value::Array(parts))
                if !schema.contains_key("type")
                    && parts.iter().any(|part| part["type"] == "string") =>
            {
                out.insert("type".into(), json!("string"));
            }
            ("allOf" | "oneOf" | "anyOf" | "not" | "nullable", _) => {}
            ("properties" | "items", _) if is_bare => {}
            ("type", _) if is_nullable || is_open && value == "object" => {}
            ("type", _) if value == "array" && (is_bare || !schema.contains_key("items")) => {}
            // Names are anybody's choice, and so are values.
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter();
                let all = properties.map(|(name, schema)| (name.clone(), rewritten(schema)));
                out.insert(key.clone(), all.collect());
            }
            ("default" | "enum" | "example", _) => {
                out.insert(key.clone(), value.clone());
            }
            ("required", Value::Array(names)) => {
                let names = still_required(schema, names);
                if !names.is_empty() {
                    out.insert(key.clone(), Value::Array(names));
                }
            }
            _ => {
                out.insert(key.clone(), rewritten(value));
            }
        }
    }
    Value::Object(out)
}

/// Fields that must be there: not those that may be null, which old clients take for absent.
fn still_required(schema: &Map<String, Value>, names: &[Value]) -> Vec<Value> {
    let properties = schema.get("properties");
    let is_nullable = |name: &Value| {
        let property = name.as_str().and_then(|name| properties?.get(name));
        property.is_some_and(|property| property["nullable"] == true)
    };
    names.iter().filter(|name| !is_nullable(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_old_clients_misread_is_left_out() {
        let schema = json!({"type": "object", "required": ["maybe", "sure"], "properties": {
            "maybe": {"type": "array", "nullable": true, "items": {"type": "string"}},
            "sure": {"type": "string", "allOf": [{"minLength": 1}], "enum": ["a"]},
            "open": {"type": "object", OPEN: true, "properties": {"x": {"type": "string"}}},
            "not": {"type": "string", "default": {"not": "read"}},
        }});
        let expected = json!({"type": "object", "required": ["sure"], "properties": {
            "maybe": {},
            "sure": {"type": "string", "enum": ["a"]},
            "open": {OPEN: true},
            "not": {"type": "string", "default": {"not": "read"}},
        }});
        assert_eq!(rewritten(&schema), expected);
        let kind = json!([{"group": "g", "kind": "K", "version": "v"}]);
        let open = json!({"type": "object", "description": "D", OPEN: true, KIND: kind,
            "properties": {"spec": {"type": "object"}}});
        assert_eq!(definition(&open), json!({"type": "object", KIND: kind}));
    }
}
