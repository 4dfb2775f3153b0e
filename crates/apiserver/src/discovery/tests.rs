//! Discovery as clients read it.

use serde_json::{Value, json};

use crate::testing::TestServer;

const ASKED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                     application/json";

#[test]
fn groups_come_in_kubernetes_order() {
    let server = TestServer::new();
    let groups = server.get("/apis");
    let names: Vec<&str> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "apiregistration.k8s.io",
            "apps",
            "events.k8s.io",
            "authentication.k8s.io",
            "authorization.k8s.io",
            "autoscaling",
            "batch",
            "certificates.k8s.io",
            "networking.k8s.io",
            "policy",
            "rbac.authorization.k8s.io",
            "storage.k8s.io",
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "scheduling.k8s.io",
            "coordination.k8s.io",
            "node.k8s.io",
            "discovery.k8s.io",
            "resource.k8s.io",
            "flowcontrol.apiserver.k8s.io",
            "storagemigration.k8s.io",
            "convoy.dev",
        ]
    );
    let autoscaling = server.get("/apis/autoscaling");
    assert_eq!(autoscaling["preferredVersion"]["version"], "v2");
    assert_eq!(server.get("/api")["versions"], json!(["v1"]));
}

#[test]
fn resources_are_listed_with_their_parts() {
    let server = TestServer::new();
    let list = server.get("/api/v1");
    let find = |name: &str| -> Value {
        let entries = list["resources"].as_array().unwrap();
        entries.iter().find(|entry| entry["name"] == name).unwrap().clone()
    };
    assert_eq!(
        find("pods/eviction"),
        json!({"name": "pods/eviction", "singularName": "", "namespaced": true,
            "group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]})
    );
    assert_eq!(find("namespaces/finalize")["verbs"], json!(["update"]));
    assert_eq!(find("pods")["shortNames"], json!(["po"]));
    assert_eq!(server.call("GET", "/apis/nope/v1", &Value::Null).0, 404);
    assert_eq!(server.call("GET", "/apis/apps/v9", &Value::Null).0, 404);
    assert_eq!(server.call("POST", "/apis", &Value::Null).0, 405);
}

#[test]
fn the_aggregated_form_is_known_by_its_media_type_and_kept_by_its_tag() {
    let server = TestServer::new();
    let answered = server.send("GET", "/apis", &[("accept", ASKED)], "");
    assert_eq!(
        answered.header("content-type"),
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    assert_eq!((answered.header("vary"), answered.header("cache-control")), ("Accept", "public"));
    let apps = &answered.json()["items"][1];
    assert_eq!(apps["metadata"]["name"], "apps");
    let deployments = &apps["versions"][0]["resources"][2];
    assert_eq!(deployments["scope"], "Namespaced");
    assert_eq!(deployments["subresources"][0]["responseKind"]["group"], "autoscaling");
    let tag = answered.header("etag").to_owned();
    assert_eq!(tag.len(), 130);
    let again = server.send("GET", "/apis", &[("accept", ASKED), ("if-none-match", &tag)], "");
    assert_eq!((again.code, again.bytes.len()), (304, 0));
    let core = server.send("GET", "/api", &[("accept", ASKED)], "").json();
    assert_eq!(core["items"][0]["metadata"], json!({}));
}

#[test]
fn each_group_and_version_is_an_object_too() {
    let server = TestServer::new();
    let first = server.server.cluster("").unwrap();
    for _ in 0..2 {
        server.run(crate::clusters::services::keep(&server.server, &first)).unwrap();
    }
    let services = server.get("/apis/apiregistration.k8s.io/v1/apiservices");
    let items = services["items"].as_array().unwrap();
    assert_eq!(items.len(), 23);
    let apps = server.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps");
    assert_eq!(apps["spec"]["groupPriorityMinimum"], 17_800);
    assert_eq!(apps["status"]["conditions"][0]["reason"], "Local");
}

#[test]
fn what_another_server_would_serve_is_not_available() {
    let server = TestServer::new();
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = json!({"metadata": {"name": "v1.metrics.example.com"}, "spec": {
        "group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 100,
        "versionPriority": 100, "service": {"name": "metrics", "namespace": "kube-system"}}});
    let made = server.create(path, &service);
    let condition = &made["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Available"), &json!("False")));
    assert_eq!(condition["reason"], "ServiceNotFound");
    assert_eq!(condition["message"], "service/metrics in \"kube-system\" is not present");
}
