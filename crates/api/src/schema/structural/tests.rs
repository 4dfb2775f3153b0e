//! Schemas that an API server refuses, and the word of the refusal that tells them apart.

use super::*;

fn errors(spec: &Value) -> Vec<String> {
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "things.a.example"},
        "spec": {"group": "a.example", "scope": "Cluster", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": spec}}}}]},
    }))
    .unwrap();
    structural_errors(&crd)
}

#[test]
fn what_is_not_structural_is_refused() {
    let text = json!({"type": "string"});
    let cases = [
        (json!({}), "must not be empty for specified object fields"),
        (json!({"type": "array"}), "items: Required value"),
        (json!({"type": "object", "$ref": "#/x"}), "$ref: Forbidden"),
        (json!({"type": "array", "items": text, "uniqueItems": true}), "uniqueItems"),
        (
            json!({"type": "object", "properties": {"a": text}, "additionalProperties": text}),
            "mutual exclusive",
        ),
        (json!({"type": "object", "anyOf": [{"type": "object"}]}), "anyOf[0].type: Forbidden"),
        (
            json!({"type": "object", "oneOf": [{"properties": {"a": {"minLength": 1}}}]}),
            "defined outside",
        ),
        (json!({"type": "string", "x-kubernetes-list-type": "set"}), "must be array"),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
            "list-map-keys",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": text}}}),
            "must have a default or be a required",
        ),
        (json!({"type": "integer", "default": "x"}), "must be of type integer"),
        (json!({"type": "object", "default": {"x": 1}}), "unknown fields"),
        (json!({"type": "string", "pattern": "(?=x)"}), "regular expression"),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]}),
            "Syntax error",
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "this == 'a'"}]}),
            "undeclared reference to 'this'",
        ),
        (
            json!({"type": "array", "items": {"type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}),
            "uncorrelatable",
        ),
    ];
    for (spec, want) in cases {
        let errors = errors(&spec);
        assert!(errors.iter().any(|error| error.contains(want)), "{want}: {errors:?}");
    }
}

#[test]
fn what_is_structural_is_accepted() {
    let cases = [
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "object", "properties": {"a": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"properties": {"a": {"minLength": 1}}}]}),
        json!({"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}}),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
            "x-kubernetes-validations": [{"rule": "self.all(x, x.size() < 3) && type(self) == list"}]}),
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}),
    ];
    for spec in cases {
        assert_eq!(errors(&spec), [""; 0], "{spec}");
    }
}
