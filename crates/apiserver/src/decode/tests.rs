//! Custom kinds and YAML; the recorded answers of Go show the rest.

use serde_json::json;

use super::*;
use crate::types::from_schema;
use crate::types::shape_of;

#[test]
fn findings_are_told_and_dropped() {
    let shape = shape_of("v1", "ConfigMap").unwrap();
    let body = br#"{"data":{"q":"1","q":"2"},"metadata":{"foo":1},"dat":{"x":{"y":1,"y":2}}}"#;
    let decoded = decode_json(shape, body).unwrap();
    assert_eq!(decoded.unknown, ["metadata.foo", "dat"]);
    assert_eq!(decoded.duplicates, ["data.q"]);
    assert_eq!(decoded.value, json!({"data": {"q": "2"}, "metadata": {}}));
}

#[test]
fn a_wrong_type_is_told_as_go_does() {
    let shape = shape_of("v1", "ConfigMap").unwrap();
    let error = decode_json(shape, br#"{"data":{"a":1}}"#).unwrap_err();
    let wanted = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
    assert_eq!(error.to_string(), wanted);
    assert!(matches!(decode_json(shape, b"{\"a\":"), Err(DecodeError::Syntax(_))));
    assert!(matches!(decode_json(shape, b"{} {}"), Err(DecodeError::Syntax(_))));
}

#[test]
fn yaml_is_read_with_the_same_findings() {
    let shape = shape_of("v1", "ConfigMap").unwrap();
    let body = b"kind: ConfigMap\ndata:\n  a: \"1\"\n  a: \"2\"\nimmutable: true\nfoo: [1, 2]\n";
    let decoded = decode_yaml(shape, body).unwrap();
    assert_eq!(
        (&decoded.unknown[..], &decoded.duplicates[..]),
        (&["foo".to_owned()][..], &["data.a".to_owned()][..])
    );
    assert_eq!(decoded.value, json!({"kind": "ConfigMap", "data": {"a": "2"}, "immutable": true}));
    assert!(decode_yaml(shape, b"a: [").is_err());
    assert!(decode_yaml(shape, b"a: 1\n---\nb: 1\n").is_err());
    assert!(decode_yaml(shape, b"\xff").is_err());
}

#[test]
fn custom_kinds_leave_types_to_their_schema_but_for_metadata() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"size": {"type": "integer"}, "free": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}}}}});
    let (shapes, root) = from_schema(&schema);
    let shape = shapes.get(root);
    let body = br#"{"spec":{"size":"x","other":1,"free":{"a":1,"a":2}},"metadata":{"nme":""}}"#;
    let decoded = decode_json(shape, body).unwrap();
    assert_eq!(decoded.unknown, ["spec.other", "metadata.nme"]);
    assert_eq!(decoded.duplicates, ["spec.free.a"]);
    assert_eq!(decoded.value, json!({"spec": {"size": "x", "free": {"a": 2}}, "metadata": {}}));
    assert!(decode_json(shape, br#"{"metadata":{"labels":{"a":1}}}"#).is_err());
}

#[test]
fn a_long_key_above_a_long_list_is_not_copied_for_every_item() {
    let shape = shape_of("v1", "ConfigMap").unwrap();
    let (key, items) = ("k".repeat(500_000), vec!["{}"; 100_000].join(","));
    let body = format!("{{\"{key}\":[{items}],\"metadata\":{{\"{key}\":[{items}]}}}}");
    assert_eq!(decode_json(shape, body.as_bytes()).unwrap().unknown.len(), 2);
    let untyped = decode_json(crate::shape::untyped(), body.as_bytes()).unwrap();
    assert_eq!(untyped.unknown.len(), 0);
}

#[test]
fn nesting_is_bounded() {
    let shape = crate::shape::untyped();
    for (open, depth) in [("[", 100_000), ("{\"a\":", 100_000)] {
        assert!(decode_json(shape, open.repeat(depth).as_bytes()).is_err());
    }
    assert!(decode_yaml(shape, "[".repeat(10_000).as_bytes()).is_err());
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    assert!(decode_json(shape, deep.as_bytes()).is_ok());
}
