//! What a logical cluster begins with, and what a restart does to it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::access::tests::World;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn again(world: &World) -> u64 {
    let server = &world.test.server;
    let before = server.store.revision().0;
    world.furnish("");
    server.store.revision().0 - before
}

#[test]
fn a_cluster_begins_with_what_kubernetes_begins_with() {
    let world = World::new();
    let names = |path: &str| -> Vec<String> {
        let list = world.test.get(path);
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        names("/api/v1/namespaces"),
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
    assert_eq!(names(&format!("{RBAC}/clusterroles")).len(), 73);
    let service = world.test.get("/api/v1/namespaces/default/services/kubernetes");
    assert_eq!(service["spec"]["clusterIP"], "10.96.0.1");
    let range = world.test.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes");
    assert_eq!(range["spec"]["cidrs"], json!(["10.96.0.0/16"]));
    let ready = &range["status"]["conditions"][0];
    assert_eq!((&ready["type"], &ready["status"]), (&json!("Ready"), &json!("True")));
    assert_eq!(names("/api/v1/namespaces/kube-public/serviceaccounts"), ["default"]);
    let trust = world.test.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt");
    assert!(trust["data"]["ca.crt"].as_str().unwrap().starts_with("-----BEGIN"));
    assert_eq!(names("/apis/scheduling.k8s.io/v1/priorityclasses").len(), 2);
    let admin = world.test.get(&format!("{RBAC}/clusterroles/admin"));
    assert!(admin["rules"].as_array().unwrap().len() > 20, "a sum that is summed up already");
    let uids: std::collections::BTreeSet<String> = world.test.get(&format!("{RBAC}/clusterroles"))
        ["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["uid"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(uids.len(), 73, "each has an identity of its own");
}

#[test]
fn a_second_start_writes_nothing() {
    assert_eq!(again(&World::new()), 0);
}

#[test]
fn a_start_adds_what_is_missing_and_keeps_what_was_added() {
    let world = World::new();
    let path = format!("{RBAC}/clusterroles/system:basic-user");
    let extra = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
    let patch = json!({"rules": [extra]});
    assert_eq!(world.test.call("PATCH", &path, &patch).0, 200);
    let binding = format!("{RBAC}/clusterrolebindings/system:discovery");
    assert_eq!(world.test.call("PATCH", &binding, &json!({"subjects": null})).0, 200);
    let gone = format!("{RBAC}/clusterroles/system:node");
    assert_eq!(world.test.call("DELETE", &gone, &Value::Null).0, 200);
    assert_eq!(again(&world), 3);
    let rules = world.test.get(&path)["rules"].clone();
    let rules = rules.as_array().unwrap();
    assert_eq!((rules.len(), &rules[0]), (3, &extra));
    assert_eq!(world.test.get(&binding)["subjects"][0]["name"], "system:authenticated");
    world.test.get(&gone);
    assert_eq!(again(&world), 0);
}

#[test]
fn what_says_so_is_left_alone() {
    let world = World::new();
    let path = format!("{RBAC}/clusterroles/system:basic-user");
    let patch = json!({"rules": [],
        "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}});
    assert_eq!(world.test.call("PATCH", &path, &patch).0, 200);
    assert_eq!(again(&world), 0);
}

#[test]
fn a_new_address_reaches_the_service() {
    let world = World::new();
    let mut access = crate::access::Access::new(
        crate::access::Authorization::Rbac,
        crate::access::TokenFile::default(),
        crate::access::Signer::generate().unwrap(),
    );
    access.authority = "-----BEGIN CERTIFICATE-----\n".to_owned();
    access.endpoint.port = 7443;
    let test = world.test.with_access(access);
    let cluster = test.server.cluster("").unwrap();
    test.run(bootstrap(&test.server, &cluster)).unwrap();
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    assert_eq!(test.get(slices)["ports"][0]["port"], 7443);
    let service = test.get("/api/v1/namespaces/default/services/kubernetes");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 7443);
}

#[test]
fn a_namespace_is_furnished() {
    let world = World::new();
    let namespace = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "new"}});
    world.test.create("/api/v1/namespaces", &namespace);
    let server: &Arc<Server> = &world.test.server;
    let cluster = server.cluster("").unwrap();
    world.test.run(furnish(server, &cluster, "new")).unwrap();
    world.test.get("/api/v1/namespaces/new/serviceaccounts/default");
    world.test.get("/api/v1/namespaces/new/configmaps/kube-root-ca.crt");
}
