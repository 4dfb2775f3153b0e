//! What the engine says about values, row by row. The texts were compared with those of a real
//! API server.

#![expect(clippy::needless_pass_by_value, clippy::too_many_lines, reason = "tables of literals")]

use serde_json::{Value, json};

use super::*;

fn schema(spec: Value) -> Schema {
    Schema::from_json(&json!({
        "type": "object", "required": ["spec"], "properties": {"spec": spec},
    }))
}

fn errors(spec_schema: Value, spec: Value) -> Vec<String> {
    let object =
        json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec});
    let errors = schema(spec_schema).validate(&object, None);
    errors.iter().map(ToString::to_string).collect()
}

fn field(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

#[test]
fn broken_values_are_reported_in_the_servers_words() {
    let cases = [
        (
            json!({"type": "integer"}),
            json!("x"),
            r#"spec.a: Invalid value: "string": spec.a in body must be of type integer: "string""#,
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(true),
            r#"spec.a: Invalid value: "": spec.a in body must be of type int32: """#,
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.a"#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!([]),
            r#"spec.a: Invalid value: "array": spec.a in body must be of type integer,string: "array""#,
        ),
        (
            json!({"type": "string", "enum": ["A", "B"]}),
            json!("x"),
            r#"spec.a: Unsupported value: "x": supported values: "A", "B""#,
        ),
        (
            json!({"type": "integer", "enum": [1, 2]}),
            json!(3),
            r#"spec.a: Unsupported value: 3: supported values: "1", "2""#,
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            r#"spec.a: Invalid value: "b": spec.a in body should match '^a+$'"#,
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("ä"),
            r#"spec.a: Invalid value: "ä": spec.a in body should be at least 2 chars long"#,
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("äöü"),
            "spec.a: Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("x"),
            r#"spec.a: Invalid value: "x": spec.a in body must be of type date-time: "x""#,
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            "spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1",
        ),
        (
            json!({"type": "integer", "maximum": 100}),
            json!(101),
            "spec.a: Invalid value: 101: spec.a in body should be less than or equal to 100",
        ),
        (
            json!({"type": "number", "exclusiveMinimum": true, "minimum": 0}),
            json!(0.0),
            "spec.a: Invalid value: 0: spec.a in body should be greater than 0",
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(7),
            "spec.a: Invalid value: 7: spec.a in body should be a multiple of 5",
        ),
        (
            json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
            json!(["a", "b"]),
            "spec.a: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
            json!([]),
            "spec.a: Invalid value: 0: spec.a in body should have at least 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", 1]),
            r#"spec.a[1]: Invalid value: "integer": spec.a[1] in body must be of type string: "integer""#,
        ),
        (json!({"type": "object", "required": ["b"]}), json!({}), "spec.a.b: Required value"),
        (
            json!({"type": "object", "minProperties": 1}),
            json!({}),
            "spec.a: Invalid value: 0: spec.a in body should have at least 1 properties",
        ),
        (
            json!({"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}}),
            json!({"x": "1", "y": "2"}),
            "spec.a: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"x": 1}),
            r#"spec.a.x: Invalid value: "integer": spec.a.x in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            json!(["Empty", "Drifted", "Empty", "Empty"]),
            r#"spec.a[2]: Duplicate value: "Empty""#,
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
            json!([{"k": "a"}, {"k": "a"}]),
            r#"spec.a[1]: Duplicate value: {"k":"a"}"#,
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true}),
            json!({"kind": "Pod"}),
            "spec.a.apiVersion: Required value",
        ),
        (
            json!({"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "integer"}},
                "not": {"required": ["b", "c"]}}),
            json!({"b": 1, "c": 2}),
            r#"<nil>: Invalid value: "": "spec.a" must not validate the schema (not)"#,
        ),
    ];
    for (rules, value, want) in cases {
        assert_eq!(errors(field(rules), json!({"a": value})), [want]);
    }
}

#[test]
fn a_fraction_is_neither_of_the_type_nor_of_the_width() {
    assert_eq!(
        errors(field(json!({"type": "integer"})), json!({"a": 1.5})),
        [
            r#"spec.a: Invalid value: "number": spec.a in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.a"#,
        ]
    );
}

#[test]
fn branches_report_the_combination_and_the_nearest_failure() {
    let any_of = json!({"type": "string", "anyOf": [{"pattern": "^a$"}, {"pattern": "^b$"}]});
    assert_eq!(
        errors(field(any_of), json!({"a": "c"})),
        [
            r#"<nil>: Invalid value: "": "spec.a" must validate at least one schema (anyOf)"#,
            r#"spec.a: Invalid value: "c": spec.a in body should match '^a$'"#,
        ]
    );
    let one_of = json!({"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string"}},
        "oneOf": [{"required": ["b"]}, {"required": ["c"]}]});
    assert_eq!(
        errors(field(one_of), json!({"a": {"b": "", "c": ""}})),
        [
            r#"<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
}

#[test]
fn what_is_fine_is_accepted() {
    let cases = [
        (json!({"type": "integer"}), json!(1.0)),
        (json!({"type": "number"}), json!(1)),
        (json!({"x-kubernetes-int-or-string": true}), json!("25%")),
        (json!({"type": "string", "nullable": true}), Value::Null),
        (json!({"type": "string"}), Value::Null), // dropped before it is looked at
        (json!({"type": "integer", "format": "uint32"}), json!(-1)), // no format Kubernetes knows
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"x": [{}]}),
        ),
        (json!({"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]}), json!("a")),
    ];
    for (rules, value) in cases {
        assert_eq!(errors(field(rules), json!({"a": value})), [""; 0]);
    }
}

fn ruled(rule: Value) -> Value {
    json!({"type": "object", "x-kubernetes-validations": [rule], "properties": {
        "replicas": {"type": "integer"},
        "max-surge": {"x-kubernetes-int-or-string": true},
        "namespace": {"type": "string"},
        "since": {"type": "string", "format": "date-time"},
        "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }})
}

#[test]
fn broken_rules_are_reported_in_the_servers_words() {
    let spec = json!({"replicas": 12, "max-surge": "25%", "namespace": "shop",
        "since": "2026-01-01T00:00:00Z", "names": ["b", "a"]});
    let cases = [
        (
            json!({"rule": "self.replicas <= 10", "message": "too many"}),
            "spec: Invalid value: too many",
        ),
        (
            json!({"rule": "self.replicas <= 10"}),
            "spec: Invalid value: failed rule: self.replicas <= 10",
        ),
        (
            json!({"rule": "self.replicas <= 10", "message": "no",
                "messageExpression": "'at most 10, got %d'.format([self.replicas])"}),
            "spec: Invalid value: at most 10, got 12",
        ),
        (
            json!({"rule": "false", "message": "no", "fieldPath": ".replicas", "reason": "FieldValueForbidden"}),
            "spec.replicas: Forbidden: no",
        ),
        (
            json!({"rule": "false", "message": "no", "reason": "FieldValueRequired"}),
            "spec: Required value: no",
        ),
        (
            json!({"rule": "self.missing == 1", "message": "no"}),
            r#"spec: Invalid value: "object": no such key: missing evaluating rule: no"#,
        ),
        (
            json!({"rule": "self.replicas == (", "message": "no"}),
            "spec: Invalid value: \"object\": rule compile error",
        ),
    ];
    for (rule, want) in cases {
        let errors = errors(ruled(rule), spec.clone());
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].starts_with(want), "{}", errors[0]);
    }
    let fine = [
        "type(self.max__dash__surge) == string ? self.max__dash__surge.endsWith('%') : self.max__dash__surge > 0",
        "self.__namespace__ == 'shop'",
        "self.since < timestamp('2027-01-01T00:00:00Z')",
        "self.names == ['a', 'b']",
        "!has(self.other)",
        "self.replicas > oldSelf.replicas + 100", // no old object: skipped
    ];
    for rule in fine {
        assert_eq!(errors(ruled(json!({"rule": rule})), spec.clone()), [""; 0], "{rule}");
    }
}

#[test]
fn rules_are_left_out_where_the_object_is_malformed() {
    let errors = errors(ruled(json!({"rule": "false"})), json!({"replicas": "x"}));
    assert_eq!(
        errors,
        [
            r#"spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string""#,
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ]
    );
}

#[test]
fn transition_rules_compare_with_the_old_object() {
    let rules = json!({"type": "object", "properties": {
        "class": {"type": "string", "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": "class is immutable"}]},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "only up"}]}},
    }});
    let object = |spec: Value| json!({"spec": spec});
    let old = object(json!({"class": "a", "list": [{"k": "x", "v": 2}, {"k": "y", "v": 5}]}));
    let new = object(
        json!({"class": "b", "list": [{"k": "y", "v": 4}, {"k": "x", "v": 3}, {"k": "z", "v": 0}]}),
    );
    let errors = schema(rules).validate(&new, Some(&old));
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            r#"spec.class: Invalid value: "b": class is immutable"#,
            "spec.list[0]: Invalid value: only up",
        ]
    );
}

#[test]
fn defaults_fill_what_is_absent_and_reach_below_themselves() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 7}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string", "default": "x"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"d": {"type": "boolean", "default": true}}}},
        "n": {"type": "string", "nullable": true, "default": "y"},
        "gone": {"type": "string"},
    }}));
    let mut object =
        json!({"spec": {"list": [{}, {"c": "z"}], "map": {"k": {}}, "n": null, "gone": null}});
    let mut budget = SizeBudget::new(1_000);
    schema.default_within(&mut object, &mut budget).unwrap();
    let want = json!({"spec": {
        "a": {"b": 7}, "list": [{"c": "x"}, {"c": "z"}], "map": {"k": {"d": true}}, "n": null,
    }});
    assert_eq!(object, want);
}

#[test]
fn unknown_fields_are_named_and_dropped() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                 "properties": {"strict": {"type": "object"}}},
    }}));
    let mut object = json!({"apiVersion": "x/v1", "kind": "K", "metadata": {"name": "n"}, "extra": 1, "spec": {
        "a": "x", "z": {}, "list": [{"b": "", "c": ""}], "free": {"any": {"thing": 1}, "strict": {"y": 1}}}});
    let unknown = schema.prune(&mut object);
    assert_eq!(unknown, ["extra", "spec.free.strict.y", "spec.list[0].c", "spec.z"]);
    assert_eq!(schema.prune(&mut object), [""; 0]);
    assert_eq!(object["spec"]["free"], json!({"any": {"thing": 1}, "strict": {}}));
}
