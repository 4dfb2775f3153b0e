//! What the recorded answers of Go do not show: custom kinds, and that nothing is left to do.

use convoy_testkit::property;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::types::from_schema;
use crate::types::{shape_of, table};

fn canonical(api_version: &str, kind: &str, mut value: Value) -> String {
    canonicalise(shape_of(api_version, kind).expect("a built-in kind"), &mut value);
    value.to_string()
}

#[test]
fn required_fields_are_there_and_empty_ones_are_not() {
    let namespace = json!({"metadata": {"labels": {}, "name": "a", "creationTimestamp": null},
        "apiVersion": "v1", "kind": "Namespace"});
    let wanted =
        r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"},"spec":{},"status":{}}"#;
    assert_eq!(canonical("v1", "Namespace", namespace), wanted);
    let budget = canonical("policy/v1", "PodDisruptionBudget", json!({"spec": {"selector": {}}}));
    let wanted = r#"{"metadata":{},"spec":{"selector":{}},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}}"#;
    assert_eq!(budget, wanted);
}

#[test]
fn quantities_have_one_spelling() {
    let quota = json!({"spec": {"hard": {"cpu": "1000m", "b": 0.5, "a": "1024Mi"}}});
    let quota = canonical("v1", "ResourceQuota", quota);
    assert!(quota.contains(r#"{"a":"1Gi","b":"500m","cpu":"1"}"#), "{quota}");
}

#[test]
fn custom_kinds_are_sorted_and_keep_what_is_empty() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}}});
    let (shapes, root) = from_schema(&schema);
    let mut object = json!({"spec": {"b": [], "a": {"z": null, "y": ""}}, "kind": "Thing",
        "metadata": {"name": "a", "labels": {}, "creationTimestamp": null, "annotations": {"b": "", "a": ""}},
        "apiVersion": "example.com/v1"});
    canonicalise(shapes.get(root), &mut object);
    let wanted = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"annotations":{"a":"","b":""},"name":"a"},"spec":{"a":{"y":"","z":null},"b":[]}}"#;
    assert_eq!(object.to_string(), wanted);
}

/// Names of real fields, so that the walk goes deep, and a few that are none.
fn any_object() -> impl Strategy<Value = Value> {
    let names = [
        "spec",
        "status",
        "metadata",
        "template",
        "containers",
        "resources",
        "limits",
        "cpu",
        "name",
        "labels",
        "conditions",
        "type",
        "lastTransitionTime",
        "data",
        "replicas",
        "items",
        "default",
        "properties",
        "a",
        "schema",
        "versions",
        "openAPIV3Schema",
        "strategy",
    ];
    let texts = ["", "a", "1000m", "2026-01-01T00:00:00.5Z", "0001-01-01T00:00:00Z", "QQ=="];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        Just(json!(1.5)),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(7, 80, 6, move |inner| {
        let key = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(property::config(256))]

    #[test]
    fn a_second_time_changes_nothing(object in any_object(), index in any::<prop::sample::Index>()) {
        let kinds: Vec<_> = table().kinds().collect();
        let (api_version, kind) = kinds[index.index(kinds.len())];
        let shape = shape_of(api_version, kind).expect("a kind of the table");
        let mut once = object;
        canonicalise(shape, &mut once);
        let mut twice = once.clone();
        canonicalise(shape, &mut twice);
        prop_assert_eq!(once.to_string(), twice.to_string());
    }
}
