//! Small requests that would become large.

use serde_json::{Value, json};

use crate::testing::TestServer;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PATH: &str = "/apis/example.com/v1/widgets";
const LIMIT: &str = "Request entity too large: limit is 3145728";

fn definition(default: &Value) -> Value {
    let mut note = json!({"type": "string"});
    if !default.is_null() {
        note["default"] = default.clone();
    }
    let item = json!({"type": "object", "properties": {"note": note, "name": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"items": {"type": "array", "items": item}},
        "x-kubernetes-preserve-unknown-fields": true}}});
    json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}}]}})
}

/// A server with widgets, each item of which has a default of 4 KB if it is wanted.
fn server(with_default: bool) -> TestServer {
    let test = TestServer::new();
    let default = if with_default { json!("x".repeat(4_000)) } else { Value::Null };
    test.create(DEFINITIONS, &definition(&default));
    test
}

fn widget(name: &str, items: usize) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
        "spec": {"items": vec![json!({}); items]}})
}

fn is_refused((code, answer): (u16, Value)) {
    let message = answer["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (code, answer["reason"].as_str()),
        (413, Some("RequestEntityTooLarge")),
        "{message}"
    );
    assert!(message.starts_with(LIMIT), "{message}");
    assert!(message.contains("would have at least 62"), "6 MiB and no more: {message}");
}

#[test]
fn defaults_stop_where_an_object_becomes_too_large() {
    let test = server(true);
    is_refused(test.call("POST", PATH, &widget("w", 100_000)));
    let small = test.create(PATH, &widget("w", 100));
    assert_eq!(small["spec"]["items"][99]["note"].as_str().unwrap().len(), 4_000);
    is_refused(test.call(
        "PATCH",
        &format!("{PATH}/w"),
        &json!({"spec": widget("w", 100_000)["spec"]}),
    ));
    let apply = format!("{PATH}/v?fieldManager=test");
    let media = [("content-type", "application/apply-patch+yaml")];
    let answered = test.send("PATCH", &apply, &media, widget("v", 100_000).to_string());
    is_refused((answered.code, answered.json()));
}

#[test]
fn a_pod_of_empty_containers_is_refused_before_its_defaults() {
    let test = TestServer::new();
    test.create("/api/v1/namespaces", &json!({"metadata": {"name": "a"}}));
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": vec![json!({}); 100_000]}});
    is_refused(test.call("POST", "/api/v1/namespaces/a/pods", &pod));
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": vec![json!({}); 1_000]}});
    let (code, _) = test.call("POST", "/api/v1/namespaces/a/pods", &pod);
    assert_eq!(code, 422, "it is small enough to be found invalid");
}

#[test]
fn defaults_that_came_later_leave_large_objects_as_they_are() {
    let test = server(false);
    test.create(PATH, &widget("large", 100_000));
    test.create(PATH, &widget("small", 1));
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let mut definition = definition(&json!("x".repeat(4_000)));
    definition["metadata"] = test.get(&path)["metadata"].clone();
    assert_eq!(test.call("PUT", &path, &definition).0, 200);
    let answered = test.send("GET", &format!("{PATH}/large"), &[], "");
    assert!(answered.bytes.len() < 1 << 20, "{} bytes", answered.bytes.len());
    assert!(answered.header("warning").contains("defaults"), "{}", answered.header("warning"));
    let listed = test.get(PATH);
    assert_eq!(listed["items"][0]["spec"]["items"][0]["note"], Value::Null);
    assert_eq!(listed["items"][1]["spec"]["items"][0]["note"].as_str().unwrap().len(), 4_000);
}

#[test]
fn copies_of_a_patch_are_refused_with_their_size() {
    let test = server(false);
    let mut object = widget("w", 0);
    object["spec"]["a"] = json!("x".repeat(1 << 20));
    test.create(PATH, &object);
    let copy = |i| json!({"op": "copy", "from": "/spec/a", "path": format!("/spec/b{i}")});
    let patch: Vec<Value> = (0..5).map(copy).collect();
    let media = [("content-type", "application/json-patch+json")];
    let answered = test.send("PATCH", &format!("{PATH}/w"), &media, json!(patch).to_string());
    let message = answered.json()["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(answered.code, 422, "{message}");
    assert!(message.contains("is 3145734, exceeding the limit 3145728"), "{message}");
}
