//! What an API server demands of a schema before it serves a CRD: structure stands outside of
//! the combinators, rules compile, defaults are valid.

mod expressions;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::Schema;
use super::node::Node;
use super::values;
use crate::size::SizeBudget;

/// What a default may grow by through the defaults below it: an object is no larger.
const DEFAULT_MAX: usize = 3 << 20;

/// Keywords of JSON schema that a CRD must not use.
const FORBIDDEN: &[&str] = &[
    "$ref",
    "definitions",
    "dependencies",
    "deprecated",
    "discriminator",
    "id",
    "patternProperties",
    "readOnly",
    "writeOnly",
    "xml",
    "additionalItems",
    "$schema",
];

/// Keywords that say what a value is made of, and so stand outside of combinators.
const STRUCTURE: &[&str] = &[
    "type",
    "additionalProperties",
    "default",
    "title",
    "description",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

/// Everything for which an API server would refuse `crd`, or serve it without its schema.
/// Each line names the version and the position in its schema.
pub fn structural_errors(crd: &CustomResourceDefinition) -> Vec<String> {
    let mut errors = Vec::new();
    let storage = crd.spec.versions.iter().filter(|version| version.storage).count();
    if storage != 1 {
        errors.push(format!(
            "spec.versions: must have exactly one version marked as storage version, not {storage}"
        ));
    }
    for version in &crd.spec.versions {
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let Some(schema) = schema else {
            errors.push(format!("{}: Required value: schemas are required", version.name));
            continue;
        };
        let schema = serde_json::to_value(schema).unwrap_or_default();
        let mut check = Check { errors: Vec::new(), compiled: Vec::new() };
        check.node(&schema, SchemaPosition::root());
        if check.errors.is_empty() {
            check.errors = check.compiled;
        }
        errors.extend(check.errors.into_iter().map(|error| format!("{}: {error}", version.name)));
    }
    errors
}

/// A node's position in the schema, and what holds there.
#[derive(Clone)]
struct SchemaPosition {
    path: String,
    level: Level,
    /// The list or map below which old and new elements cannot be matched.
    uncorrelatable: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

impl SchemaPosition {
    fn root() -> Self {
        Self { path: "openAPIV3Schema".to_owned(), level: Level::Root, uncorrelatable: None }
    }

    fn below(&self, path: &str, level: Level) -> Self {
        let path = format!("{}.{path}", self.path);
        Self { path, level, uncorrelatable: self.uncorrelatable.clone() }
    }
}

struct Check {
    errors: Vec<String>,
    /// What compilers say, who are asked about sound schemas alone.
    compiled: Vec<String>,
}

impl Check {
    fn error(&mut self, position: &SchemaPosition, keyword: &str, message: &str) {
        self.errors.push(format!("{}.{keyword}: {message}", position.path));
    }

    fn node(&mut self, schema: &Value, position: SchemaPosition) {
        self.keywords(schema, &position);
        self.kind(schema, &position);
        self.lists(schema, &position);
        self.combinators(schema, schema, &position);
        self.default(schema, &position);
        self.rules(schema, &position);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let below = position.below(&format!("properties[{name}]"), Level::Field);
            match name.as_str() {
                "metadata" if position.level == Level::Root => self.metadata(property, &below),
                "apiVersion" | "kind"
                    if position.level == Level::Root && property["type"] != "string" =>
                {
                    self.error(&below, "type", "must be string");
                }
                _ => self.node(property, below),
            }
        }
        if schema["additionalProperties"].is_object() {
            let below = position.below("additionalProperties", Level::Field);
            self.node(&schema["additionalProperties"], below);
        }
        if schema["items"].is_object() {
            let mut below = position.below("items", Level::Item);
            if schema["x-kubernetes-list-type"] != "map" {
                below.uncorrelatable.get_or_insert(position.path);
            }
            self.node(&schema["items"], below);
        }
    }

    fn keywords(&mut self, schema: &Value, position: &SchemaPosition) {
        for keyword in FORBIDDEN {
            if schema.get(keyword).is_some_and(|value| *value != json!(false)) {
                self.error(position, keyword, "Forbidden: not supported");
            }
        }
        if schema["uniqueItems"] == true {
            self.error(position, "uniqueItems", "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
        }
        if let Some(pattern) = schema["pattern"].as_str()
            && regex::Regex::new(pattern).is_err()
        {
            self.error(position, "pattern", "must be a valid regular expression");
        }
        let additional = &schema["additionalProperties"];
        let has_properties = schema["properties"].as_object().is_some_and(|map| !map.is_empty());
        if !additional.is_null() && *additional != json!(true) && has_properties {
            self.error(
                position,
                "additionalProperties",
                "Forbidden: additionalProperties and properties are mutual exclusive",
            );
        }
        if *additional == json!(false) {
            self.error(position, "additionalProperties", "Forbidden: must not be false");
        }
        if !additional.is_null() && position.level == Level::Root {
            self.error(position, "additionalProperties", "Forbidden: must not be used at the root");
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == json!(false) {
            self.error(
                position,
                "x-kubernetes-preserve-unknown-fields",
                "must be true or undefined",
            );
        }
    }

    fn kind(&mut self, schema: &Value, position: &SchemaPosition) {
        let kind = schema["type"].as_str().unwrap_or_default();
        let is = |keyword: &str| schema[keyword] == json!(true);
        let int_or_string = is("x-kubernetes-int-or-string");
        if kind.is_empty() && !int_or_string && !is("x-kubernetes-preserve-unknown-fields") {
            let of = match position.level {
                Level::Root => "at the root",
                Level::Item => "for specified array items",
                Level::Field => "for specified object fields",
            };
            self.error(position, "type", &format!("Required value: must not be empty {of}"));
        }
        if position.level == Level::Root && !kind.is_empty() && kind != "object" {
            self.error(position, "type", "must be object at the root");
        }
        if int_or_string && !kind.is_empty() {
            self.error(position, "type", "must be empty if x-kubernetes-int-or-string is true");
        }
        if is("x-kubernetes-embedded-resource") && kind != "object" {
            self.error(
                position,
                "type",
                "must be object if x-kubernetes-embedded-resource is true",
            );
        }
        if kind == "array" && !schema["items"].is_object() {
            self.error(position, "items", "Required value: must be specified");
        }
        for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if int_or_string && is(keyword) {
                self.error(
                    position,
                    keyword,
                    "must be false if x-kubernetes-int-or-string is true",
                );
            }
        }
    }

    fn lists(&mut self, schema: &Value, position: &SchemaPosition) {
        let keys: Vec<_> =
            schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().collect();
        match schema["x-kubernetes-list-type"].as_str() {
            None if keys.is_empty() => {}
            Some(_) if schema["type"] != "array" => {
                self.error(
                    position,
                    "type",
                    "must be array if x-kubernetes-list-type is specified",
                );
            }
            Some("map") if keys.is_empty() => {
                self.error(
                    position,
                    "x-kubernetes-list-map-keys",
                    "Required value: must not be empty if x-kubernetes-list-type is map",
                );
            }
            Some("map") => self.keys(&schema["items"], &keys, position),
            Some("set" | "atomic") if keys.is_empty() => self.set(schema, position),
            Some("set" | "atomic") | None => {
                self.error(
                    position,
                    "x-kubernetes-list-type",
                    "must be map if x-kubernetes-list-map-keys is non-empty",
                );
            }
            Some(_) => self.error(
                position,
                "x-kubernetes-list-type",
                "supported values: \"atomic\", \"set\", \"map\"",
            ),
        }
        if !schema["x-kubernetes-map-type"].is_null() && schema["type"] != "object" {
            self.error(position, "type", "must be object if x-kubernetes-map-type is specified");
        }
    }

    fn set(&mut self, schema: &Value, position: &SchemaPosition) {
        let items = &schema["items"];
        if schema["x-kubernetes-list-type"] == "set"
            && items["type"] == "object"
            && items["x-kubernetes-map-type"] != "atomic"
        {
            self.error(
                position,
                "items.x-kubernetes-map-type",
                "must be atomic as item of a list with x-kubernetes-list-type=set",
            );
        }
    }

    fn keys(&mut self, items: &Value, keys: &[&Value], position: &SchemaPosition) {
        if items["type"] != "object" {
            self.error(
                position,
                "items.type",
                "must be object if parent array's x-kubernetes-list-type is map",
            );
        }
        for key in keys.iter().filter_map(|key| key.as_str()) {
            let property = &items["properties"][key];
            let is_required =
                items["required"].as_array().is_some_and(|names| names.contains(&json!(key)));
            if property.is_null() {
                self.error(
                    position,
                    "x-kubernetes-list-map-keys",
                    "entries must all be names of item properties",
                );
            } else if property["type"] == "array" || property["type"] == "object" {
                self.error(
                    position,
                    "items.properties",
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                );
            } else if !is_required && property["default"].is_null() {
                self.error(position, &format!("items.properties[{key}].default"), "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
            }
        }
    }

    fn metadata(&mut self, schema: &Value, position: &SchemaPosition) {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let is_name = |name: &str| name == "name" || name == "generateName";
        if schema["type"] != "object" || properties.into_iter().any(|(name, _)| !is_name(name)) {
            self.errors.push(format!("{}: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified", position.path));
        }
    }

    /// Branches of `schema`, each of which may only speak of what `outside` has declared.
    fn combinators(&mut self, schema: &Value, outside: &Value, position: &SchemaPosition) {
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let branches = schema[keyword].as_array().into_iter().flatten();
            if keyword == "anyOf"
                && schema["anyOf"] == either
                && outside["x-kubernetes-int-or-string"] == true
            {
                continue;
            }
            for (index, branch) in branches.enumerate() {
                self.branch(
                    branch,
                    outside,
                    &position.below(&format!("{keyword}[{index}]"), position.level),
                );
            }
        }
        if schema["not"].is_object() {
            self.branch(&schema["not"], outside, &position.below("not", position.level));
        }
    }

    fn branch(&mut self, branch: &Value, outside: &Value, position: &SchemaPosition) {
        for keyword in STRUCTURE {
            let empty = [json!(null), json!(false), json!("")];
            if !empty.contains(&branch[keyword]) {
                self.error(position, keyword, "Forbidden: must be undefined to be structural");
            }
        }
        self.keywords(branch, position);
        for (name, property) in branch["properties"].as_object().into_iter().flatten() {
            let below = position.below(&format!("properties[{name}]"), Level::Field);
            match outside["properties"].get(name) {
                Some(outside) => self.branch(property, outside, &below),
                None => self.errors.push(format!("{}: Required value: because it is defined in {} it must be defined outside of it too", below.path, position.path)),
            }
        }
        if branch["items"].is_object() {
            self.branch(&branch["items"], &outside["items"], &position.below("items", Level::Item));
        }
        self.combinators(branch, outside, position);
    }

    /// A default is pruned, defaulted and valid itself.
    fn default(&mut self, schema: &Value, position: &SchemaPosition) {
        let Some(default) = schema.get("default") else { return };
        let node = Node::compile(schema);
        let mut stored = default.clone();
        let wrapped =
            Schema::from_json(&json!({"type": "object", "properties": {"value": schema}}));
        let mut object = json!({"value": stored});
        if !wrapped.prune(&mut object).is_empty() {
            self.error(position, "default", "must not have unknown fields");
        }
        if super::defaulting::fill(&node, &mut stored, &mut SizeBudget::new(DEFAULT_MAX)).is_err() {
            let error = format!("must not grow by more than {DEFAULT_MAX} bytes by other defaults");
            self.error(position, "default", &error);
            return;
        }
        for error in values::validate(&node, &stored) {
            self.error(position, "default", &error.message);
        }
        for error in super::rules::validate(&node, &stored, None) {
            self.error(position, "default", &error.message);
        }
    }
}

#[cfg(test)]
mod tests;
