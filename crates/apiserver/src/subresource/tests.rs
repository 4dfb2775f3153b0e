//! Sub-resources as clients use them, against a server in this process.

use serde_json::{Value, json};

use crate::testing::TestServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn server() -> TestServer {
    let server = TestServer::new();
    let (code, _) =
        server.call("POST", "/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
    assert!(matches!(code, 201 | 409));
    server
}

fn pod(server: &TestServer, name: &str) -> Value {
    let containers = json!([{"name": "a", "image": "x"}]);
    server.create(PODS, &json!({"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"containers": containers}}))
}

fn bind(server: &TestServer, name: &str, node: &str) -> (u16, Value) {
    let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
    server.call("POST", &format!("{PODS}/{name}/binding"), &binding)
}

fn run(server: &TestServer, name: &str) {
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    let status = json!({"status": {"phase": "Running", "conditions": conditions}});
    let (code, answer) = server.call("PATCH", &format!("{PODS}/{name}/status"), &status);
    assert_eq!(code, 200, "{answer}");
}

fn budget(server: &TestServer, name: &str, status: &Value) {
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}});
    server.create(BUDGETS, &json!({"metadata": {"name": name}, "spec": spec}));
    let path = format!("{BUDGETS}/{name}/status");
    let (code, answer) = server.call("PATCH", &path, &json!({"status": status}));
    assert_eq!(code, 200, "{answer}");
}

fn evict(server: &TestServer, name: &str) -> (u16, Value) {
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    server.call("POST", &format!("{PODS}/{name}/eviction"), &eviction)
}

#[test]
fn a_pod_is_bound_once() {
    let server = server();
    pod(&server, "p");
    let (code, answer) = bind(&server, "p", "n1");
    assert_eq!((code, answer["status"].as_str()), (201, Some("Success")), "{answer}");
    let bound = server.get(&format!("{PODS}/p"));
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    let (code, answer) = bind(&server, "p", "n2");
    assert_eq!(code, 409);
    assert_eq!(
        answer["message"],
        "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\""
    );
    pod(&server, "q");
    let binding = json!({"metadata": {"name": "q"}, "target": {"name": "n1"}});
    let (code, answer) = server.call("POST", "/api/v1/namespaces/default/bindings", &binding);
    assert_eq!(code, 201, "{answer}");
}

#[test]
fn a_scale_reads_and_writes_replicas() {
    let server = server();
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "x"}]}});
    let spec =
        json!({"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template});
    server.create(DEPLOYMENTS, &json!({"metadata": {"name": "d"}, "spec": spec}));
    let path = format!("{DEPLOYMENTS}/d/scale");
    let mut scale = server.get(&path);
    assert_eq!(
        (&scale["spec"]["replicas"], &scale["status"]["selector"]),
        (&json!(2), &json!("app=x"))
    );
    scale["spec"]["replicas"] = json!(5);
    let (code, answer) = server.call("PUT", &path, &scale);
    assert_eq!((code, &answer["spec"]["replicas"]), (200, &json!(5)), "{answer}");
    let deployment = server.get(&format!("{DEPLOYMENTS}/d"));
    assert_eq!(
        (&deployment["spec"]["replicas"], &deployment["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
    // The version that it was read at is no longer the current one.
    assert_eq!(server.call("PUT", &path, &scale).0, 409);
    let (code, answer) = server.call("PATCH", &path, &json!({"spec": {"replicas": 0}}));
    assert_eq!((code, &answer["spec"]), (200, &json!({})), "{answer}");
    let (code, answer) = server.call("PATCH", &path, &json!({"spec": {"replicas": -1}}));
    assert_eq!(code, 422, "{answer}");
}

#[test]
fn an_eviction_asks_the_budget() {
    let server = server();
    for name in ["pending", "a", "b"] {
        pod(&server, name);
    }
    budget(
        &server,
        "pdb",
        &json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}),
    );
    assert_eq!(evict(&server, "pending").0, 201);
    for name in ["a", "b"] {
        assert_eq!(bind(&server, name, "n1").0, 201);
        run(&server, name);
    }
    let (code, answer) = evict(&server, "a");
    assert_eq!(code, 201, "{answer}");
    let gone = server.get(&format!("{PODS}/a"));
    assert!(!gone["metadata"]["deletionTimestamp"].is_null(), "{gone}");
    let reasons: Vec<&Value> =
        gone["status"]["conditions"].as_array().unwrap().iter().map(|one| &one["reason"]).collect();
    assert!(reasons.contains(&&json!("EvictionByEvictionAPI")), "{gone}");
    let counted = server.get(&format!("{BUDGETS}/pdb"));
    assert_eq!(counted["status"]["disruptionsAllowed"], 0);
    assert!(counted["status"]["disruptedPods"]["a"].is_string(), "{counted}");
    let (code, answer) = evict(&server, "b");
    assert_eq!(code, 429, "{answer}");
    assert_eq!(
        answer["message"],
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    assert_eq!(answer["details"]["causes"][0]["reason"], "DisruptionBudget");
    assert_eq!(evict(&server, "none").0, 404);
    budget(&server, "second", &json!({"observedGeneration": 1, "disruptionsAllowed": 1}));
    assert_eq!(evict(&server, "b").0, 500);
}

#[test]
fn a_budget_that_is_not_settled_makes_evictions_wait() {
    let server = server();
    pod(&server, "a");
    assert_eq!(bind(&server, "a", "n1").0, 201);
    run(&server, "a");
    budget(&server, "pdb", &json!({"disruptionsAllowed": 1}));
    let (code, answer) = evict(&server, "a");
    assert_eq!((code, &answer["details"]["retryAfterSeconds"]), (429, &json!(10)), "{answer}");
    assert_eq!(
        answer["details"]["causes"][0]["message"],
        "The disruption budget pdb is still being processed by the server."
    );
}

#[test]
fn parts_of_a_pod_change_through_their_own_path() {
    let server = server();
    pod(&server, "p");
    let extra = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "x"}]}});
    let (code, answer) = server.call("PATCH", &format!("{PODS}/p/ephemeralcontainers"), &extra);
    assert_eq!((code, &answer["metadata"]["generation"]), (200, &json!(2)), "{answer}");
    let none = json!({"spec": {"ephemeralContainers": []}});
    assert_eq!(server.call("PATCH", &format!("{PODS}/p/ephemeralcontainers"), &none).0, 422);
    let (code, answer) =
        server.call("PATCH", &format!("{PODS}/p"), &json!({"spec": {"hostname": "h"}}));
    assert_eq!(code, 422);
    assert!(
        answer["message"].as_str().unwrap().contains("pod updates may not change fields"),
        "{answer}"
    );
    let (code, answer) = server.call("GET", &format!("{PODS}/p/exec"), &Value::Null);
    assert_eq!((code, answer["reason"].as_str()), (405, Some("MethodNotAllowed")));
    let log = server.send("GET", &format!("{PODS}/p/log"), &[], "");
    assert_eq!((log.code, log.header("content-type")), (200, "text/plain"));
}

#[test]
fn the_parts_of_the_control_plane_are_well() {
    let server = server();
    let scheduler = server.get("/api/v1/componentstatuses/scheduler");
    assert_eq!(scheduler["conditions"][0]["status"], "True");
    assert_eq!(server.get("/api/v1/componentstatuses")["items"].as_array().unwrap().len(), 3);
    assert_eq!(server.call("GET", "/api/v1/componentstatuses/none", &Value::Null).0, 404);
}
