//! Namespaces are furnished, and go with their content.

use super::*;

fn conditions(namespace: &Value) -> Vec<String> {
    let conditions = namespace["status"]["conditions"].as_array().into_iter().flatten();
    let shown = conditions.filter(|one| one["status"] == "True");
    shown.map(|one| one["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_new_namespace_is_furnished_and_stays_so() {
    let server = server();
    settle(&server);
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    let certificates = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    server.get(account);
    assert!(server.get(certificates)["data"]["ca.crt"].is_string());
    let uid = server.get(account)["metadata"]["uid"].clone();
    let mut chores = super::super::Chores::new(&server.server);
    server.run(chores.settle());
    server.call("DELETE", account, &Value::Null);
    server.run(chores.settle());
    assert_ne!(server.get(account)["metadata"]["uid"], uid);
}

#[test]
fn certificates_are_restored_when_somebody_changes_or_deletes_them() {
    let server = server();
    let mut chores = super::super::Chores::new(&server.server);
    server.run(chores.settle());
    let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    let data = server.get(path)["data"].clone();
    let change = json!({"metadata": {"labels": {"mine": "yes"}},
        "data": {"ca.crt": "mine", "other": "x"}});
    assert_eq!(server.call("PATCH", path, &change).1["data"]["other"], "x");
    server.run(chores.settle());
    let restored = server.get(path);
    assert_eq!(restored["data"], data);
    assert_eq!(restored["metadata"]["labels"]["mine"], "yes", "the metadata are anybody's");
    let (code, _) = server.call("DELETE", path, &Value::Null);
    assert_eq!(code, 200);
    server.run(chores.settle());
    assert_eq!(server.get(path)["data"], data);
    let before = server.server.store.revision();
    server.run(chores.settle());
    assert_eq!(server.server.store.revision(), before, "nothing is left to do");
}

#[test]
fn a_namespace_goes_with_its_content_pods_first() {
    let server = server();
    namespace(&server, "going");
    settle(&server);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p",
        "finalizers": ["example.com/hold"]}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.create("/api/v1/namespaces/going/pods", &pod);
    let mut held = map("held", &[]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.create("/api/v1/namespaces/going/configmaps", &held);
    let (code, answer) = server.call("DELETE", "/api/v1/namespaces/going", &Value::Null);
    assert_eq!((code, &answer["status"]["phase"]), (200, &json!("Terminating")));
    settle(&server);
    let found = server.get("/api/v1/namespaces/going");
    assert_eq!(conditions(&found), ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"]);
    assert!(
        !server.get("/api/v1/namespaces/going/pods/p")["metadata"]["deletionTimestamp"].is_null()
    );
    let held = server.get("/api/v1/namespaces/going/configmaps/held");
    assert!(held["metadata"]["deletionTimestamp"].is_null(), "pods go first");
    let (code, status) =
        server.call("POST", "/api/v1/namespaces/going/configmaps", &map("late", &[]));
    assert_eq!(
        (code, &status["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    let free = json!({"metadata": {"finalizers": null}});
    server.call("PATCH", "/api/v1/namespaces/going/pods/p", &free);
    settle(&server);
    server.call("PATCH", "/api/v1/namespaces/going/configmaps/held", &free);
    settle(&server);
    assert_eq!(server.call("GET", "/api/v1/namespaces/going", &Value::Null).0, 404);
    namespace(&server, "going");
}

#[test]
fn a_namespace_with_thousands_of_objects_goes_step_by_step() {
    let server = server();
    namespace(&server, "big");
    for index in 0..1_000 {
        let object = map(&format!("m{index}"), &[]);
        server.create("/api/v1/namespaces/big/configmaps", &object);
    }
    server.call("DELETE", "/api/v1/namespaces/big", &Value::Null);
    let mut chores = super::super::Chores::new(&server.server);
    server.run(chores.step());
    let left = server.get("/api/v1/namespaces/big/configmaps")["items"].as_array().unwrap().len();
    assert!(left >= 1_000 - super::super::BATCH, "{left}");
    server.run(chores.settle());
    assert_eq!(server.call("GET", "/api/v1/namespaces/big", &Value::Null).0, 404);
}

#[test]
fn events_are_kept_for_an_hour_after_their_last_change() {
    let server = server();
    let event = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "R"})
    };
    let path = "/api/v1/namespaces/default/events";
    let names = || -> Vec<String> {
        let listed = server.get(path);
        let items = listed["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    server.create(path, &event("once"));
    server.create(path, &event("again"));
    let mut chores = super::super::Chores::new(&server.server);
    server.run(chores.settle());
    server.advance_secs(1_800);
    let (code, _) = server.call("PATCH", &format!("{path}/again"), &json!({"count": 2}));
    assert_eq!(code, 200);
    server.run(chores.settle());
    server.advance_secs(1_799);
    server.run(chores.settle());
    assert_eq!(names(), ["again", "once"]);
    server.advance_secs(1);
    assert_eq!(chores.wake_at(), Some(server.server.now()));
    server.run(chores.settle());
    assert_eq!(names(), ["again"]);
    server.advance_secs(1_800);
    settle(&server);
    assert_eq!(names(), Vec::<String>::new(), "a restart keeps the time");
}
