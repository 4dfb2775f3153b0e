//! What the server does of itself, step by step, through its own API.

mod certificates;
mod clusters;
mod garbage;
mod graphs;
mod namespaces;
mod quotas;

use serde_json::{Value, json};

use crate::testing::TestServer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> TestServer {
    let server = TestServer::new();
    namespace(&server, "default");
    server
}

fn namespace(server: &TestServer, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    server.create("/api/v1/namespaces", &object);
}

fn settle(server: &TestServer) {
    server.run(super::settle(&server.server));
}

fn map(name: &str, owners: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": owners}})
}

fn make(server: &TestServer, name: &str, owners: &[Value]) -> Value {
    server.create(MAPS, &map(name, owners))
}

/// A reference to an object, which blocks its deletion or not.
fn owner(object: &Value, blocks: bool) -> Value {
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
        "name": object["metadata"]["name"], "uid": object["metadata"]["uid"],
        "blockOwnerDeletion": blocks})
}

fn delete(server: &TestServer, path: &str, policy: &str) -> Value {
    let (code, answer) = server.call("DELETE", path, &json!({"propagationPolicy": policy}));
    assert_eq!(code, 200, "{path}: {answer}");
    answer
}

/// The names of the maps that are there, without the one that every namespace has.
fn maps(server: &TestServer) -> Vec<String> {
    let listed = server.get(MAPS);
    let items = listed["items"].as_array().unwrap();
    let names = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}
