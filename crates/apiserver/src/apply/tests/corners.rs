//! Scale, sub-resources that may set a few fields only, and kubectl's annotation.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::shapes::kinds;
use crate::apply::{
    Context, Error, FieldSet, Managers, Reset, Step, apply, managers_of_parent, managers_of_scale,
};

const PATH: [&str; 2] = ["spec", "size"];

fn entry(manager: &str, operation: &str, version: &str, subresource: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": version,
        "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": subresource})
}

fn managers(list: Value) -> Managers {
    Managers::parse(Some(&list)).unwrap()
}

fn lines(managers: Managers) -> Vec<String> {
    let Some(Value::Array(entries)) = managers.into_value() else { return Vec::new() };
    let line = |entry: &Value| {
        let text = |field: &str| entry[field].as_str().unwrap_or("-").to_owned();
        let who = [text("manager"), text("operation"), text("apiVersion"), text("subresource")];
        format!("{} {}", who.join(" "), entry["fieldsV1"]).replace('"', "")
    };
    entries.iter().map(line).collect()
}

#[test]
fn a_scale_shows_who_owns_the_number_and_gives_it_back() {
    let both = json!({"f:spec": {"f:size": {}, "f:mode": {}}});
    let mode = json!({"f:spec": {"f:mode": {}}});
    let parent = managers(json!([
        entry("a", "Apply", "example.dev/v1", "", both),
        entry("b", "Update", "example.dev/v1", "", mode),
    ]));
    let scale = managers_of_scale(&parent, &PATH);
    assert_eq!(lines(scale.clone()), ["a Apply autoscaling/v1 - {f:spec:{f:replicas:{}}}"]);

    let unchanged = managers_of_parent(&parent, &scale, &PATH, "example.dev/v1");
    assert_eq!(unchanged, parent);

    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let taken = managers(json!([entry("hpa", "Update", "autoscaling/v1", "scale", replicas)]));
    let expected = [
        "a Apply example.dev/v1 - {f:spec:{f:mode:{}}}",
        "b Update example.dev/v1 - {f:spec:{f:mode:{}}}",
        "hpa Update example.dev/v1 scale {f:spec:{f:size:{}}}",
    ];
    assert_eq!(lines(managers_of_parent(&parent, &taken, &PATH, "example.dev/v1")), expected);
}

#[test]
fn a_sub_resource_sets_nothing_but_what_it_is_for() {
    let step = |name: &str| Step::Field(name.into());
    let reset = Reset::AllBut(vec![vec![step("spec"), step("rules"), Step::Any, step("weight")]]);
    let fields = json!({"f:spec": {"f:size": {}, "f:rules": {
        "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:weight": {}}}}});
    let mut set = FieldSet::parse(&fields).unwrap();
    reset.remove_from(&mut set);
    let expected = json!({"f:spec": {"f:rules": {
        "k:{\"name\":\"a\"}": {".": {}, "f:weight": {}}}}});
    assert_eq!(set.to_value(), expected);
}

#[test]
fn kubectl_takes_over_what_its_annotation_wrote() {
    let kinds = kinds();
    let widget = |spec: Value| {
        let (version, kind) = ("example.dev/v1", "Widget");
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": spec})
    };
    let written = widget(json!({"size": 1, "mode": "x"}));
    let mut live = widget(json!({"size": 1, "mode": "changed"}));
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    live["metadata"]["annotations"] = json!({annotation: written.to_string()});
    let fields = json!({"f:spec": {"f:size": {}, "f:mode": {}}});
    live["metadata"]["managedFields"] =
        json!([entry("kubectl-client-side-apply", "Update", "example.dev/v1", "", fields)]);
    let reset = Reset::nothing();
    let context = Context {
        shape: kinds.shape("Widget"),
        api_version: "example.dev/v1",
        served: &[],
        manager: "kubectl",
        subresource: "",
        now: Timestamp::new(1_767_225_600, 0).unwrap(),
        reset: &reset,
    };
    let config = widget(json!({"size": 2}));
    let applied = apply(&context, Some(&live), &config, false).unwrap();
    assert_eq!(applied["spec"], json!({"size": 2, "mode": "changed"}));
    let refreshed = applied["metadata"]["annotations"][annotation].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(refreshed).unwrap(), config);

    let both = widget(json!({"size": 2, "mode": "y"}));
    let Err(Error::Conflicts(left)) = apply(&context, Some(&live), &both, false) else {
        panic!("somebody else changed the mode")
    };
    let fields: Vec<_> = left.causes().map(|cause| cause.field).collect();
    assert_eq!(fields, [".spec.mode"]);
    let other = Context { manager: "helm", ..context };
    assert!(apply(&other, Some(&live), &config, false).is_err());
}
