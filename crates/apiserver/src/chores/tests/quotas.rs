//! Resource quotas, from the write that is charged to what is given back.

use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use super::{MAPS, make, server, settle};
use crate::access::Peer;
use crate::handler::handle;
use crate::testing::TestServer;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn limited(hard: &Value) -> TestServer {
    let server = server();
    server.create(QUOTAS, &json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}));
    settle(&server);
    server
}

fn used(server: &TestServer) -> Value {
    server.get(&format!("{QUOTAS}/q"))["status"]["used"].clone()
}

fn pod(name: &str, memory: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i",
        "resources": {"requests": {"memory": memory}}}]}})
}

#[test]
fn what_is_written_is_charged_and_what_goes_is_given_back() {
    let server = limited(&json!({"configmaps": "2", "count/configmaps": "9"}));
    // Every namespace has one of its own.
    assert_eq!(used(&server), json!({"configmaps": "1", "count/configmaps": "1"}));
    make(&server, "a", &[]);
    assert_eq!(used(&server), json!({"configmaps": "2", "count/configmaps": "2"}));
    let map = json!({"metadata": {"name": "b"}});
    for path in [MAPS.to_owned(), format!("{MAPS}?dryRun=All")] {
        let (code, answer) = server.call("POST", &path, &map);
        assert_eq!(code, 403, "{answer}");
        assert_eq!(
            answer["message"],
            "configmaps \"b\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"
        );
    }
    server.call("DELETE", &format!("{MAPS}/a"), &Value::Null);
    settle(&server);
    assert_eq!(used(&server), json!({"configmaps": "1", "count/configmaps": "1"}));
    server.create(MAPS, &map);
}

#[test]
fn pods_that_end_are_given_back() {
    let server = limited(&json!({"pods": "2", "requests.memory": "1Gi"}));
    server.create(PODS, &pod("a", "1000Mi"));
    assert_eq!(used(&server), json!({"pods": "1", "requests.memory": "1000Mi"}));
    let (code, answer) = server.call("POST", PODS, &pod("b", "100Mi"));
    assert_eq!(code, 403, "{answer}");
    let (code, answer) = server.call("POST", PODS, &pod("c", "0"));
    assert_eq!(code, 201, "{answer}");
    let ended = json!({"status": {"phase": "Failed"}});
    let (code, answer) = server.call("PATCH", &format!("{PODS}/a/status"), &ended);
    assert_eq!(code, 200, "{answer}");
    settle(&server);
    assert_eq!(used(&server), json!({"pods": "1", "requests.memory": "0"}));
}

#[test]
fn a_quota_that_changes_is_counted_again() {
    let server = limited(&json!({"configmaps": "5"}));
    make(&server, "a", &[]);
    let hard = json!({"configmaps": "7", "secrets": "1"});
    server.call("PATCH", &format!("{QUOTAS}/q"), &json!({"spec": {"hard": hard}}));
    settle(&server);
    let status = &server.get(&format!("{QUOTAS}/q"))["status"];
    assert_eq!(status, &json!({"hard": hard, "used": {"configmaps": "2", "secrets": "0"}}));
    // Whoever writes the status does not have the last word.
    server.call(
        "PATCH",
        &format!("{QUOTAS}/q/status"),
        &json!({"status": {"hard": {"secrets": "9"}}}),
    );
    settle(&server);
    assert_eq!(server.get(&format!("{QUOTAS}/q"))["status"]["hard"], hard);
}

#[test]
fn custom_objects_are_counted() {
    let server = limited(&json!({"count/widgets.example.com": "1"}));
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}}]}});
    server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    server.create(path, &widget("a"));
    let (code, answer) = server.call("POST", path, &widget("b"));
    assert_eq!(code, 403, "{answer}");
    server.call("DELETE", &format!("{path}/a"), &Value::Null);
    settle(&server);
    server.create(path, &widget("b"));
}

#[test]
fn writes_side_by_side_do_not_exceed_a_quota_together() {
    let server = limited(&json!({"configmaps": "4"}));
    let peer = Peer { is_local: true, ..Peer::default() };
    let requests = (0..12).map(|number| {
        let body = json!({"metadata": {"name": format!("m{number}")}}).to_string();
        let request = Request::builder().method("POST").uri(MAPS);
        let request = request.header("content-type", "application/json");
        handle(&server.server, request.body(Full::new(Bytes::from(body))).unwrap(), &peer)
    });
    let answers = server.run(join_all(requests));
    let codes: Vec<u16> = answers.iter().map(|answer| answer.status().as_u16()).collect();
    let count = |code: u16| codes.iter().filter(|known| **known == code).count();
    assert_eq!((count(201), count(403)), (3, 9), "{codes:?}");
    assert_eq!(used(&server), json!({"configmaps": "4"}));
}
