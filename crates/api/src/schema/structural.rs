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
/// Each line names the version and the place in its schema.
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
        check.node(&schema, Place::root());
        if check.errors.is_empty() {
            check.errors = check.compiled;
        }
        errors.extend(check.errors.into_iter().map(|error| format!("{}: {error}", version.name)));
    }
    errors
}

/// A node's place in the schema, and what holds there.
#[derive(Clone)]
struct Place {
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

impl Place {
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
    fn error(&mut self, place: &Place, keyword: &str, message: &str) {
        self.errors.push(format!("{}.{keyword}: {message}", place.path));
    }

    fn node(&mut self, schema: &Value, place: Place) {
        self.keywords(schema, &place);
        self.kind(schema, &place);
        self.lists(schema, &place);
        self.combinators(schema, schema, &place);
        self.default(schema, &place);
        self.rules(schema, &place);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let below = place.below(&format!("properties[{name}]"), Level::Field);
            match name.as_str() {
                "metadata" if place.level == Level::Root => self.metadata(property, &below),
                "apiVersion" | "kind"
                    if place.level == Level::Root && property["type"] != "string" =>
                {
                    self.error(&below, "type", "must be string");
                }
                _ => self.node(property, below),
            }
        }
        if schema["additionalProperties"].is_object() {
            let below = place.below("additionalProperties", Level::Field);
            self.node(&schema["additionalProperties"], below);
        }
        if schema["items"].is_object() {
            let mut below = place.below("items", Level::Item);
            if schema["x-kubernetes-list-type"] != "map" {
                below.uncorrelatable.get_or_insert(place.path);
            }
            self.node(&schema["items"], below);
        }
    }

    fn keywords(&mut self, schema: &Value, place: &Place) {
        for keyword in FORBIDDEN {
            if schema.get(keyword).is_some_and(|value| *value != json!(false)) {
                self.error(place, keyword, "Forbidden: not supported");
            }
        }
        if schema["uniqueItems"] == true {
            self.error(place, "uniqueItems", "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
        }
        if let Some(pattern) = schema["pattern"].as_str()
            && regex::Regex::new(pattern).is_err()
        {
            self.error(place, "pattern", "must be a valid regular expression");
        }
        let additional = &schema["additionalProperties"];
        let has_properties = schema["properties"].as_object().is_some_and(|map| !map.is_empty());
        if !additional.is_null() && *additional != json!(true) && has_properties {
            self.error(
                place,
                "additionalProperties",
                "Forbidden: additionalProperties and properties are mutual exclusive",
            );
        }
        if *additional == json!(false) {
            self.error(place, "additionalProperties", "Forbidden: must not be false");
        }
        if !additional.is_null() && place.level == Level::Root {
            self.error(place, "additionalProperties", "Forbidden: must not be used at the root");
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == json!(false) {
            self.error(place, "x-kubernetes-preserve-unknown-fields", "must be true or undefined");
        }
    }

    fn kind(&mut self, schema: &Value, place: &Place) {
        let kind = schema["type"].as_str().unwrap_or_default();
        let is = |keyword: &str| schema[keyword] == json!(true);
        let int_or_string = is("x-kubernetes-int-or-string");
        if kind.is_empty() && !int_or_string && !is("x-kubernetes-preserve-unknown-fields") {
            let of = match place.level {
                Level::Root => "at the root",
                Level::Item => "for specified array items",
                Level::Field => "for specified object fields",
            };
            self.error(place, "type", &format!("Required value: must not be empty {of}"));
        }
        if place.level == Level::Root && !kind.is_empty() && kind != "object" {
            self.error(place, "type", "must be object at the root");
        }
        if int_or_string && !kind.is_empty() {
            self.error(place, "type", "must be empty if x-kubernetes-int-or-string is true");
        }
        if is("x-kubernetes-embedded-resource") && kind != "object" {
            self.error(place, "type", "must be object if x-kubernetes-embedded-resource is true");
        }
        if kind == "array" && !schema["items"].is_object() {
            self.error(place, "items", "Required value: must be specified");
        }
        for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if int_or_string && is(keyword) {
                self.error(place, keyword, "must be false if x-kubernetes-int-or-string is true");
            }
        }
    }

    fn lists(&mut self, schema: &Value, place: &Place) {
        let keys: Vec<_> =
            schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().collect();
        match schema["x-kubernetes-list-type"].as_str() {
            None if keys.is_empty() => {}
            Some(_) if schema["type"] != "array" => {
                self.error(place, "type", "must be array if x-kubernetes-list-type is specified");
            }
            Some("map") if keys.is_empty() => {
                self.error(
                    place,
                    "x-kubernetes-list-map-keys",
                    "Required value: must not be empty if x-kubernetes-list-type is map",
                );
            }
            Some("map") => self.keys(&schema["items"], &keys, place),
            Some("set" | "atomic") if keys.is_empty() => self.set(schema, place),
            Some("set" | "atomic") | None => {
                self.error(
                    place,
                    "x-kubernetes-list-type",
                    "must be map if x-kubernetes-list-map-keys is non-empty",
                );
            }
            Some(_) => self.error(
                place,
                "x-kubernetes-list-type",
                "supported values: \"atomic\", \"set\", \"map\"",
            ),
        }
        if !schema["x-kubernetes-map-type"].is_null() && schema["type"] != "object" {
            self.error(place, "type", "must be object if x-kubernetes-map-type is specified");
        }
    }

    fn set(&mut self, schema: &Value, place: &Place) {
        let items = &schema["items"];
        if schema["x-kubernetes-list-type"] == "set"
            && items["type"] == "object"
            && items["x-kubernetes-map-type"] != "atomic"
        {
            self.error(
                place,
                "items.x-kubernetes-map-type",
                "must be atomic as item of a list with x-kubernetes-list-type=set",
            );
        }
    }

    fn keys(&mut self, items: &Value, keys: &[&Value], place: &Place) {
        if items["type"] != "object" {
            self.error(
                place,
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
                    place,
                    "x-kubernetes-list-map-keys",
                    "entries must all be names of item properties",
                );
            } else if property["type"] == "array" || property["type"] == "object" {
                self.error(
                    place,
                    "items.properties",
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                );
            } else if !is_required && property["default"].is_null() {
                self.error(place, &format!("items.properties[{key}].default"), "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property");
            }
        }
    }

    fn metadata(&mut self, schema: &Value, place: &Place) {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let is_name = |name: &str| name == "name" || name == "generateName";
        if schema["type"] != "object" || properties.into_iter().any(|(name, _)| !is_name(name)) {
            self.errors.push(format!("{}: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified", place.path));
        }
    }

    /// Branches of `schema`, each of which may only speak of what `outside` has declared.
    fn combinators(&mut self, schema: &Value, outside: &Value, place: &Place) {
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
                    &place.below(&format!("{keyword}[{index}]"), place.level),
                );
            }
        }
        if schema["not"].is_object() {
            self.branch(&schema["not"], outside, &place.below("not", place.level));
        }
    }

    fn branch(&mut self, branch: &Value, outside: &Value, place: &Place) {
        for keyword in STRUCTURE {
            let empty = [json!(null), json!(false), json!("")];
            if !empty.contains(&branch[keyword]) {
                self.error(place, keyword, "Forbidden: must be undefined to be structural");
            }
        }
        self.keywords(branch, place);
        for (name, property) in branch["properties"].as_object().into_iter().flatten() {
            let below = place.below(&format!("properties[{name}]"), Level::Field);
            match outside["properties"].get(name) {
                Some(outside) => self.branch(property, outside, &below),
                None => self.errors.push(format!("{}: Required value: because it is defined in {} it must be defined outside of it too", below.path, place.path)),
            }
        }
        if branch["items"].is_object() {
            self.branch(&branch["items"], &outside["items"], &place.below("items", Level::Item));
        }
        self.combinators(branch, outside, place);
    }

    /// A default is pruned, defaulted and valid itself.
    fn default(&mut self, schema: &Value, place: &Place) {
        let Some(default) = schema.get("default") else { return };
        let node = Node::compile(schema);
        let mut stored = default.clone();
        let wrapped =
            Schema::from_json(&json!({"type": "object", "properties": {"value": schema}}));
        let mut object = json!({"value": stored});
        if !wrapped.prune(&mut object).is_empty() {
            self.error(place, "default", "must not have unknown fields");
        }
        if super::defaulting::fill(&node, &mut stored, &mut SizeBudget::new(DEFAULT_MAX)).is_err() {
            let error = format!("must not grow by more than {DEFAULT_MAX} bytes by other defaults");
            self.error(place, "default", &error);
            return;
        }
        for error in values::validate(&node, &stored) {
            self.error(place, "default", &error.message);
        }
        for error in super::rules::validate(&node, &stored, None) {
            self.error(place, "default", &error.message);
        }
    }
}

#[cfg(test)]
mod tests;
