//! What Kubernetes' conformance asks of a garbage collector.

use super::*;

fn hold(server: &TestServer, name: &str, finalizers: &Value) {
    let patch = json!({"metadata": {"finalizers": finalizers}});
    assert_eq!(server.call("PATCH", &format!("{MAPS}/{name}"), &patch).0, 200);
}

#[test]
fn dependents_follow_their_owner() {
    let server = server();
    let root = make(&server, "root", &[]);
    let child = make(&server, "child", &[owner(&root, true)]);
    make(&server, "grandchild", &[owner(&child, true)]);
    make(&server, "stranger", &[]);
    delete(&server, &format!("{MAPS}/root"), "Background");
    settle(&server);
    assert_eq!(maps(&server), ["stranger"]);
}

#[test]
fn orphans_forget_their_owner() {
    let server = server();
    let root = make(&server, "root", &[]);
    make(&server, "child", &[owner(&root, true)]);
    let answer = delete(&server, &format!("{MAPS}/root"), "Orphan");
    assert_eq!(answer["metadata"]["finalizers"], json!(["orphan"]));
    settle(&server);
    assert_eq!(maps(&server), ["child"]);
    let child = server.get(&format!("{MAPS}/child"));
    assert!(child["metadata"].get("ownerReferences").is_none(), "{child}");
}

#[test]
fn an_owner_waits_for_the_dependents_that_block_it() {
    let server = server();
    let root = make(&server, "root", &[]);
    make(&server, "blocks", &[owner(&root, true)]);
    make(&server, "passes", &[owner(&root, false)]);
    hold(&server, "blocks", &json!(["example.com/hold"]));
    hold(&server, "passes", &json!(["example.com/hold"]));
    let answer = delete(&server, &format!("{MAPS}/root"), "Foreground");
    assert_eq!(answer["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    settle(&server);
    assert_eq!(maps(&server), ["blocks", "passes", "root"]);
    hold(&server, "blocks", &Value::Null);
    settle(&server);
    assert_eq!(maps(&server), ["passes"]);
    hold(&server, "passes", &Value::Null);
    settle(&server);
    assert_eq!(maps(&server), Vec::<String>::new());
}

#[test]
fn a_second_owner_keeps_a_dependent_and_lets_the_first_go() {
    let server = server();
    let leaving = make(&server, "leaving", &[]);
    let staying = make(&server, "staying", &[]);
    make(&server, "both", &[owner(&leaving, true), owner(&staying, true)]);
    make(&server, "one", &[owner(&leaving, true)]);
    delete(&server, &format!("{MAPS}/leaving"), "Foreground");
    settle(&server);
    assert_eq!(maps(&server), ["both", "staying"]);
    let both = server.get(&format!("{MAPS}/both"));
    assert_eq!(both["metadata"]["ownerReferences"], json!([owner(&staying, true)]));
}

#[test]
fn circles_block_nobody() {
    for policy in ["Foreground", "Background"] {
        let server = server();
        let first = make(&server, "first", &[]);
        let second = make(&server, "second", &[owner(&first, true)]);
        let third = make(&server, "third", &[owner(&second, true)]);
        let patch = json!({"metadata": {"ownerReferences": [owner(&third, true)]}});
        assert_eq!(server.call("PATCH", &format!("{MAPS}/first"), &patch).0, 200);
        delete(&server, &format!("{MAPS}/first"), policy);
        settle(&server);
        assert_eq!(maps(&server), Vec::<String>::new(), "{policy}");
    }
}

#[test]
fn an_owner_must_be_where_it_can_be_seen() {
    let server = server();
    namespace(&server, "other");
    let (_, node) = server.call(
        "POST",
        "/api/v1/nodes",
        &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}),
    );
    let far = server.create("/api/v1/namespaces/other/configmaps", &map("far", &[]));
    make(&server, "of-node", &[owner(&node, false)]);
    make(&server, "of-far", &[owner(&far, false)]);
    let mut unknown = owner(&far, false);
    unknown["kind"] = json!("Nobody");
    make(&server, "of-unknown", &[unknown]);
    let mut replaced = owner(&node, false);
    replaced["uid"] = json!("of an earlier node");
    make(&server, "of-replaced", &[replaced]);
    settle(&server);
    assert_eq!(maps(&server), ["of-node", "of-unknown"]);
    server.call("DELETE", "/api/v1/nodes/n", &Value::Null);
    settle(&server);
    assert_eq!(maps(&server), ["of-unknown"]);
}

#[test]
fn quiet_objects_cost_no_write() {
    let server = server();
    let root = make(&server, "root", &[]);
    make(&server, "child", &[owner(&root, true)]);
    settle(&server);
    let revision = server.server.store.revision();
    settle(&server);
    assert_eq!(server.server.store.revision(), revision);
}
