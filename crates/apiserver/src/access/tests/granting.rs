//! Handing out rights, and roles that are sums of others.

use super::*;

/// ada may write roles and bindings in `default`, and read pods there.
fn world_with_a_granter() -> World {
    let world = World::new();
    let rules = [
        "* | rbac.authorization.k8s.io | roles rolebindings clusterroles",
        "get list | core | pods",
    ];
    world.cluster_role("granter", &rules[..1]);
    world.cluster_role("reader", &rules[1..]);
    world.test.create(
        &format!("{RBAC}/namespaces/default/rolebindings"),
        &binding("RoleBinding", "a", "reader", "ada"),
    );
    // Without escalate and bind, which the star would include.
    let path = format!("{RBAC}/clusterroles/granter");
    let verbs = "create update patch get delete | rbac.authorization.k8s.io | roles rolebindings clusterroles";
    let narrow = json!({"rules": role("ClusterRole", "x", &[verbs])["rules"]});
    assert_eq!(world.test.call("PATCH", &path, &narrow).0, 200);
    world.bind("granter", "ada", "default");
    world.bind("granter", "ada", "");
    world
}

#[test]
fn nobody_writes_a_role_beyond_their_own_rights() {
    let world = world_with_a_granter();
    let path = format!("{RBAC}/namespaces/default/roles");
    let (code, status) = world.request(
        "ada-token",
        "POST",
        &path,
        &role("Role", "r", &["get list | core | pods secrets"]),
    );
    assert_eq!(code, 403, "{status}");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"ada\""),
        "{message}"
    );
    assert!(message.ends_with(
        "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"list\"]}"
    ), "{message}");
    let own = role("Role", "r", &["get | core | pods | x"]);
    assert_eq!(world.request("ada-token", "POST", &path, &own).0, 201);
    // In another namespace, and in the whole cluster, she holds nothing of the kind.
    let cluster = format!("{RBAC}/clusterroles");
    let wide = role("ClusterRole", "wide", &["get | core | pods | x"]);
    assert_eq!(world.request("ada-token", "POST", &cluster, &wide).0, 403);
    // What is there may be changed as long as its rights are not.
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let one = format!("{path}/r");
    let patch = |body: &Value| {
        let headers = [("content-type", "application/merge-patch+json")];
        let bearer = ("authorization", "Bearer ada-token");
        let peer = Peer::default();
        world.test.send_as(&peer, "PATCH", &one, &[headers[0], bearer], body.to_string()).code
    };
    assert_eq!(patch(&labelled), 200);
    assert_eq!(patch(&json!({"rules": role("Role", "r", &["* | * | *"])["rules"]})), 403);
    assert_eq!(world.request("root-token", "POST", &cluster, &wide).0, 201);
}

#[test]
fn the_verb_escalate_lifts_the_limit() {
    let world = world_with_a_granter();
    world.cluster_role("lift", &["escalate | rbac.authorization.k8s.io | roles | r"]);
    world.bind("lift", "ada", "default");
    let path = format!("{RBAC}/namespaces/default/roles");
    let all = ["* | * | *"];
    assert_eq!(world.request("ada-token", "POST", &path, &role("Role", "r", &all)).0, 201);
    assert_eq!(world.request("ada-token", "POST", &path, &role("Role", "s", &all)).0, 403);
}

#[test]
fn nobody_binds_more_than_they_hold() {
    let world = world_with_a_granter();
    let path = format!("{RBAC}/namespaces/default/rolebindings");
    let bind = |name: &str, role: &str| {
        world.request("ada-token", "POST", &path, &binding("RoleBinding", name, role, "bob"))
    };
    assert_eq!(bind("one", "reader").0, 201);
    assert_eq!(bind("two", "cluster-admin").0, 403);
    assert_eq!(bind("two", "none").0, 404);
    world.cluster_role("binder", &["bind | rbac.authorization.k8s.io | clusterroles | view"]);
    world.bind("binder", "ada", "default");
    assert_eq!(bind("three", "view").0, 201);
    assert_eq!(bind("four", "edit").0, 403);
    // A master is not asked.
    let admin = binding("RoleBinding", "five", "cluster-admin", "bob");
    assert_eq!(world.request("root-token", "POST", &path, &admin).0, 201);
}

#[test]
fn whoever_chooses_the_parts_of_a_sum_must_hold_everything() {
    let world = world_with_a_granter();
    let mut sum = role("ClusterRole", "sum", &[]);
    sum["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let path = format!("{RBAC}/clusterroles");
    assert_eq!(world.request("ada-token", "POST", &path, &sum).0, 403);
    assert_eq!(world.request("root-token", "POST", &path, &sum).0, 201);
}

#[test]
fn sums_follow_their_parts_at_once() {
    let world = World::new();
    let rules =
        |name: &str| world.test.get(&format!("{RBAC}/clusterroles/{name}"))["rules"].clone();
    let widget = json!({"verbs": ["get"], "apiGroups": ["acme.com"], "resources": ["widgets"]});
    let has = |name: &str| rules(name).as_array().unwrap().contains(&widget);
    world.bind("view", "ada", "");
    let mut part = role("ClusterRole", "widget-view", &["get | acme.com | widgets"]);
    part["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    world.test.create(&format!("{RBAC}/clusterroles"), &part);
    // view is a part of edit, which is a part of admin.
    assert!(has("view") && has("edit") && has("admin"));
    let path = "/apis/acme.com/v1/namespaces/default/widgets/w";
    assert_eq!(world.code("ada-token", path), 404, "allowed, and not there");
    let (code, _) =
        world.test.call("DELETE", &format!("{RBAC}/clusterroles/widget-view"), &Value::Null);
    assert_eq!(code, 200);
    assert!(!has("view") && !has("edit") && !has("admin"));
    assert_eq!(world.code("ada-token", path), 403);
    // What somebody writes into a sum does not stay.
    let own = json!({"rules": role("ClusterRole", "x", &["* | * | *"])["rules"]});
    world.test.call("PATCH", &format!("{RBAC}/clusterroles/view"), &own);
    assert_eq!(world.code("ada-token", "/api/v1/namespaces/default/secrets"), 403);
}
