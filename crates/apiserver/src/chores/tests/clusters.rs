//! Logical clusters come, go and are there again.

use super::*;

const CLUSTERS: &str = "/apis/convoy.dev/v1/logicalclusters";

fn cluster(name: &str) -> Value {
    json!({"apiVersion": "convoy.dev/v1", "kind": "LogicalCluster", "metadata": {"name": name},
        "spec": {"description": "a member"}})
}

#[test]
fn a_logical_cluster_is_live_once_it_is_made() {
    let server = server();
    assert_eq!(server.call("GET", "/clusters/east/api/v1/namespaces", &Value::Null).0, 404);
    server.create(CLUSTERS, &cluster("east"));
    let made = server.get(&format!("{CLUSTERS}/east"));
    assert_eq!(made["status"], json!({"phase": "Ready", "path": "/clusters/east"}));
    let listed = server.get("/clusters/east/api/v1/namespaces");
    assert_eq!(listed["items"].as_array().unwrap().len(), 4);
    settle(&server);
    server.get("/clusters/east/api/v1/namespaces/kube-system/serviceaccounts/default");
    // Only the first cluster has clusters.
    assert_eq!(server.call("GET", &format!("/clusters/east{CLUSTERS}"), &Value::Null).0, 404);
    assert_eq!(server.call("POST", CLUSTERS, &cluster("a.b")).0, 422);
}

#[test]
fn clusters_do_not_see_each_other() {
    let server = server();
    server.create(CLUSTERS, &cluster("east"));
    server.create(CLUSTERS, &cluster("west"));
    let path = "/api/v1/namespaces/default/configmaps";
    let made = server.create(&format!("/clusters/east{path}"), &map("m", &[]));
    assert_eq!(server.call("GET", &format!("/clusters/west{path}/m"), &Value::Null).0, 404);
    // An owner in another cluster is none.
    server.create(&format!("/clusters/west{path}"), &map("child", &[owner(&made, true)]));
    settle(&server);
    assert_eq!(server.call("GET", &format!("/clusters/west{path}/child"), &Value::Null).0, 404);
    server.get(&format!("/clusters/east{path}/m"));
}

#[test]
fn a_logical_cluster_goes_with_everything_in_it() {
    let server = server();
    server.create(CLUSTERS, &cluster("east"));
    settle(&server);
    let path = "/clusters/east/api/v1/namespaces/default/configmaps";
    for index in 0..300 {
        let mut object = map(&format!("m{index}"), &[]);
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        server.create(path, &object);
    }
    let (code, answer) = server.call("DELETE", &format!("{CLUSTERS}/east"), &Value::Null);
    assert_eq!((code, &answer["status"]["phase"]), (200, &json!("Terminating")));
    settle(&server);
    assert_eq!(server.call("GET", &format!("{CLUSTERS}/east"), &Value::Null).0, 404);
    assert_eq!(server.call("GET", path, &Value::Null).0, 404);
    let snapshot = server.server.store.snapshot();
    let left: usize = snapshot
        .shelves()
        .filter(|shelf| shelf.cluster == "east")
        .map(|shelf| snapshot.count(shelf))
        .sum();
    assert_eq!(left, 0);
    server.create(CLUSTERS, &cluster("east"));
    // Nothing of the old one, only what every cluster begins with.
    let items = server.get(path)["items"].clone();
    let names: Vec<&Value> =
        items.as_array().unwrap().iter().map(|one| &one["metadata"]["name"]).collect();
    assert_eq!(names, ["kube-root-ca.crt"]);
}

#[test]
fn clusters_are_there_again_after_a_restart() {
    let server = server();
    server.create(CLUSTERS, &cluster("east"));
    server.create(CLUSTERS, &cluster("west"));
    settle(&server);
    // The process ends while one of them goes.
    server.call("DELETE", &format!("{CLUSTERS}/west"), &Value::Null);
    let again = TestServer::over(server.server.store.clone());
    again.get("/clusters/east/api/v1/namespaces/default");
    assert_eq!(again.call("GET", "/clusters/west/api/v1/namespaces", &Value::Null).0, 404);
    settle(&again);
    assert_eq!(again.call("GET", &format!("{CLUSTERS}/west"), &Value::Null).0, 404);
}

/// A hub and a hundred members are one process, so an empty cluster must be small.
#[test]
fn an_empty_cluster_costs_little() {
    let server = server();
    server.create(CLUSTERS, &cluster("east"));
    settle(&server);
    let snapshot = server.server.store.snapshot();
    let shelves = snapshot.shelves().filter(|shelf| shelf.cluster == "east");
    let sizes: Vec<usize> = shelves
        .flat_map(|shelf| snapshot.list(shelf))
        .map(|entry| entry.value.len() + size_of_val(&**entry))
        .collect();
    let bytes: usize = sizes.iter().sum();
    assert!(bytes < 256 << 10, "{} objects, {bytes} bytes", sizes.len());
    let own = server.server.cluster("east").unwrap().registry().customs().count();
    assert_eq!(own, 0, "built-in kinds are shared");
}
