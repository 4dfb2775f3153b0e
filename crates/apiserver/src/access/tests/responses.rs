//! What callers may do, what they are told if they may not, and what reviews say about it.

use super::*;

#[test]
fn nobody_in_particular_sees_health_and_version_alone() {
    for authorization in [Authorization::Rbac, Authorization::AlwaysAllow] {
        let world = World::under(authorization, None);
        for path in ["/healthz", "/livez", "/readyz", "/version"] {
            assert_eq!(world.code("", path), 200, "{authorization:?} {path}");
        }
        for path in ["/", "/api", "/apis", "/openapi/v2", "/metrics", "/openid/v1/jwks"] {
            assert_eq!(world.code("", path), 403, "{authorization:?} {path}");
        }
        for path in ["/api/v1/namespaces", "/api/v1/namespaces/default/secrets/x"] {
            assert_eq!(world.code("", path), 403, "{authorization:?} {path}");
        }
    }
}

#[test]
fn no_binding_opens_the_server_to_nobody() {
    let world = World::new();
    let everyone = json!({"kind": "ClusterRoleBinding", "metadata": {"name": "oops"},
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
        "name": "cluster-admin"},
    "subjects": [
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io",
            "name": "system:unauthenticated"},
        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "system:anonymous"},
    ]});
    world.test.create(&format!("{RBAC}/clusterrolebindings"), &everyone);
    assert_eq!(world.code("", "/api/v1/namespaces/default/secrets"), 403);
}

#[test]
fn a_bad_token_is_refused_even_where_none_is_needed() {
    let world = World::new();
    for token in ["wrong", "ada-token2", "a.b.c", "ada-toke"] {
        let (code, status) = world.request(token, "GET", "/healthz", &Value::Null);
        assert_eq!((code, &status["message"]), (401, &json!("Unauthorized")), "{token}");
        assert!(!status.to_string().contains(token), "the answer repeats no secret");
    }
    // Another scheme proves nothing and claims nothing.
    let basic = [("authorization", "Basic YWRhOmFkYQ==")];
    assert_eq!(world.send("", "GET", "/healthz", &basic, &Value::Null).code, 200);
    assert_eq!(world.send("", "GET", "/api", &basic, &Value::Null).code, 403);
}

#[test]
fn refusals_say_who_cannot_do_what_where() {
    let world = World::new();
    let cases = [
        (
            "GET",
            "/api/v1/namespaces/default/pods/x",
            "pods \"x\" is forbidden: User \"ada\" cannot get resource \"pods\" in API group \"\" in the namespace \"default\"",
        ),
        (
            "GET",
            "/api/v1/namespaces/default/pods",
            "pods is forbidden: User \"ada\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"",
        ),
        (
            "GET",
            "/api/v1/nodes?watch=1",
            "nodes is forbidden: User \"ada\" cannot watch resource \"nodes\" in API group \"\" at the cluster scope",
        ),
        (
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            "deployments.apps \"d\" is forbidden: User \"ada\" cannot update resource \"deployments/scale\" in API group \"apps\" in the namespace \"a\"",
        ),
        (
            "DELETE",
            "/apis/none.such/v1/things",
            "things.none.such is forbidden: User \"ada\" cannot deletecollection resource \"things\" in API group \"none.such\" at the cluster scope",
        ),
        ("GET", "/metrics", "forbidden: User \"ada\" cannot get path \"/metrics\""),
    ];
    for (method, path, message) in cases {
        let (code, status) = world.request("ada-token", method, path, &Value::Null);
        assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "{path}");
        assert_eq!(status["message"], message);
    }
    let (_, status) = world.request("ada-token", "GET", cases[3].1, &Value::Null);
    assert_eq!(status["details"], json!({"name": "d", "group": "apps", "kind": "deployments"}));
}

#[test]
fn a_binding_counts_from_its_write_to_its_removal() {
    let world = World::new();
    let (here, there) =
        ("/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/kube-system/configmaps");
    world.bind("view", "ada", "default");
    assert_eq!((world.code("ada-token", here), world.code("ada-token", there)), (200, 403));
    assert_eq!(world.code("ada-token", "/api/v1/configmaps"), 403);
    assert_eq!(world.code("ada-token", "/api/v1/namespaces/default/secrets"), 403);
    assert_eq!(world.code("bob-token", here), 403);
    world.bind("view", "bob", "");
    assert_eq!((world.code("bob-token", here), world.code("bob-token", there)), (200, 200));
    let path = format!("{RBAC}/namespaces/default/rolebindings/view-ada");
    assert_eq!(world.test.call("DELETE", &path, &Value::Null).0, 200);
    assert_eq!(world.code("ada-token", here), 403);
    // A binding to a role that is not there says so.
    world.bind("gone", "ada", "default");
    let (_, status) = world.request("ada-token", "GET", here, &Value::Null);
    let message = status["message"].as_str().unwrap();
    let lost = "RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found";
    assert!(message.ends_with(lost), "{message}");
}

#[test]
fn a_put_that_creates_needs_the_right_to_create() {
    let world = World::new();
    world.cluster_role("changer", &["get update patch | coordination.k8s.io | leases"]);
    world.bind("changer", "ada", "");
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "l"}, "spec": {}});
    let (code, status) = world.request("ada-token", "PUT", path, &lease);
    assert_eq!(code, 403, "{status}");
    assert!(status["message"].as_str().unwrap().contains("cannot create resource \"leases\""));
    world.cluster_role("creator", &["create | coordination.k8s.io | leases"]);
    world.bind("creator", "ada", "");
    assert_eq!(world.request("ada-token", "PUT", path, &lease).0, 201);
}

#[test]
fn impersonation_takes_on_exactly_what_is_allowed() {
    let world = World::new();
    let path = "/api/v1/namespaces/default/configmaps";
    let as_bob = [("impersonate-user", "bob")];
    let refused = world.send("ada-token", "GET", path, &as_bob, &Value::Null);
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.json()["message"],
        "users \"bob\" is forbidden: User \"ada\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
    );
    world.cluster_role("be-bob", &["impersonate | core | users | bob"]);
    world.bind("be-bob", "ada", "");
    world.bind("view", "bob", "default");
    assert_eq!(world.send("ada-token", "GET", path, &as_bob, &Value::Null).code, 200);
    let masters = [("impersonate-user", "bob"), ("impersonate-group", "system:masters")];
    assert_eq!(world.send("ada-token", "GET", path, &masters, &Value::Null).code, 403);
    // Those who may everything lose it while they are somebody else.
    let as_ada = [("impersonate-user", "ada")];
    assert_eq!(world.send("root-token", "GET", path, &as_ada, &Value::Null).code, 403);
}

#[test]
fn reviews_answer_what_requests_would_meet() {
    let world = World::new();
    world.bind("view", "ada", "default");
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let about = |verb: &str, namespace: &str| {
        json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": {"resourceAttributes":
                {"verb": verb, "resource": "pods", "namespace": namespace}}})
    };
    let (code, review) = world.request("ada-token", "POST", path, &about("list", "default"));
    assert_eq!(code, 201, "{review}");
    assert_eq!(
        review["status"],
        json!({"allowed": true, "reason":
            "RBAC: allowed by RoleBinding \"view-ada/default\" of ClusterRole \"view\" to User \"ada\""})
    );
    assert!(review["metadata"]["resourceVersion"].is_null());
    for (verb, namespace) in [("list", "kube-system"), ("list", ""), ("create", "default")] {
        let (_, review) = world.request("ada-token", "POST", path, &about(verb, namespace));
        assert_eq!(review["status"], json!({"allowed": false}), "{verb} {namespace}");
    }
    let neither = json!({"kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1", "spec": {}});
    assert_eq!(world.request("ada-token", "POST", path, &neither).0, 422);

    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let about = json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": {"user": "ada", "resourceAttributes":
            {"verb": "get", "resource": "pods", "namespace": "default", "name": "x"}}});
    assert_eq!(world.request("ada-token", "POST", path, &about).0, 403, "not everybody may ask");
    assert_eq!(world.request("root-token", "POST", path, &about).1["status"]["allowed"], true);
    let path = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let mut local = about.clone();
    local["kind"] = json!("LocalSubjectAccessReview");
    assert_eq!(world.request("root-token", "POST", path, &local).1["status"]["allowed"], true);
    local["spec"]["resourceAttributes"]["namespace"] = json!("other");
    assert_eq!(world.request("root-token", "POST", path, &local).0, 422);
}

#[test]
fn rules_reviews_list_what_is_held() {
    let world = World::new();
    world.cluster_role("look", &["get | core | pods | a", "get | /metrics"]);
    world.bind("look", "ada", "");
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = json!({"kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1", "spec": {"namespace": "default"}});
    let (code, answer) = world.request("ada-token", "POST", path, &review);
    assert_eq!(code, 201, "{answer}");
    let rules = answer["status"]["resourceRules"].as_array().unwrap();
    let look = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"],
        "resourceNames": ["a"]});
    assert!(rules.contains(&look), "{answer}");
    let paths = answer["status"]["nonResourceRules"].as_array().unwrap();
    assert!(paths.contains(&json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]})));
    assert_eq!(answer["status"]["incomplete"], false);
    let (_, answer) = world.request("root-token", "POST", path, &review);
    let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    assert!(answer["status"]["resourceRules"].as_array().unwrap().contains(&all));
}

#[test]
fn everybody_learns_who_they_are() {
    let world = World::new();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let (code, answer) = world.request("bob-token", "POST", path, &review);
    assert_eq!(code, 201, "{answer}");
    assert_eq!(
        answer,
        json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"userInfo": {"username": "bob", "uid": "2",
                "groups": ["dev", "system:authenticated"]}}})
    );
}
