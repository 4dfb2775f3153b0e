//! Mutating policies as requests meet them.

use serde_json::{Value, json};

use crate::testing::TestServer;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const API_VERSION: &str = "admissionregistration.k8s.io/v1";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn policy(name: &str, mutations: &[Value]) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"reinvocationPolicy": "Never", "mutations": mutations,
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}]}}})
}

fn put(test: &TestServer, policy: &Value) {
    test.create(&format!("{GROUP}/mutatingadmissionpolicies"), policy);
    let name = &policy["metadata"]["name"];
    let binding = json!({"apiVersion": API_VERSION, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name}});
    test.create(&format!("{GROUP}/mutatingadmissionpolicybindings"), &binding);
}

fn deploy(test: &TestServer) -> (u16, Value) {
    let labels = json!({"app": "web"});
    test.call(
        "POST",
        DEPLOYMENTS,
        &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "a", "image": "x", "args": ["1"]}]}}}}),
    )
}

#[test]
fn a_configuration_is_merged_and_a_patch_carried_out() {
    let test = TestServer::with_namespace();
    let container = r#"Object{spec: Object.spec{template: Object.spec.template{
        spec: Object.spec.template.spec{containers: [
            Object.spec.template.spec.containers{name: "a", image: object.metadata.name}]}}}}"#;
    let label = r#"[JSONPatch{op: "test", path: "/spec/replicas", value: 1337},
        JSONPatch{op: "add", path: "/metadata/labels", value: {"n": string(object.spec.replicas)}}]"#;
    let missed = r#"[JSONPatch{op: "test", path: "/spec/replicas", value: 0},
        JSONPatch{op: "remove", path: "/spec/template"}]"#;
    let replicas = "Object{spec: Object.spec{replicas: 1337}}";
    put(&test, &policy("a", &[apply(replicas), patch(missed), patch(label), apply(container)]));
    let (code, made) = deploy(&test);
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["spec"]["replicas"], 1337);
    assert_eq!(made["metadata"]["labels"], json!({"n": "1337"}));
    let container = &made["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["image"], &container["args"]), (&json!("web"), &json!(["1"])));
}

#[test]
fn what_cannot_be_merged_refuses_the_request_unless_failures_are_ignored() {
    let atomic = r#"Object{spec: Object.spec{template: Object.spec.template{
        spec: Object.spec.template.spec{containers: [
            Object.spec.template.spec.containers{name: "a", args: ["2"]}]}}}}"#;
    for (expression, why) in [
        (
            atomic,
            "may not mutate atomic arrays, maps or structs: .spec.template.spec.containers[0].args",
        ),
        ("Object{spec: Object.spec{replica: 1}}", ".spec.replica: field not declared in schema"),
        ("Object{spec: Object.wrong{}}", "type mismatch: unexpected type name \"Object.wrong\""),
        ("Object{spec: Object.spec{replicas: object.spec.none}}", "no such key: none"),
    ] {
        let mut strict = policy("a", &[apply(expression)]);
        let test = TestServer::with_namespace();
        put(&test, &strict);
        let (code, refused) = deploy(&test);
        let message = refused["message"].as_str().unwrap_or_default();
        assert_eq!((code, &refused["reason"]), (403, &json!("Invalid")), "{message}");
        let start = "policy 'a' with binding 'a' denied request: ";
        assert!(message.starts_with(start) && message.contains(why), "{message}");
        strict["spec"]["failurePolicy"] = json!("Ignore");
        let test = TestServer::with_namespace();
        put(&test, &strict);
        assert_eq!(deploy(&test).0, 201, "{expression}");
    }
}

#[test]
fn policies_that_want_it_are_called_again_after_changes() {
    let test = TestServer::with_namespace();
    let doubled = "Object{spec: Object.spec{replicas: object.spec.replicas * 2}}";
    let mut first = policy("a", &[apply(doubled)]);
    first["spec"]["reinvocationPolicy"] = json!("IfNeeded");
    first["spec"]["matchConditions"] =
        json!([{"name": "few", "expression": "object.spec.replicas < 10"}]);
    put(&test, &first);
    put(
        &test,
        &policy("b", &[apply("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}")]),
    );
    // 2, doubled to 4, plus one, doubled again.
    assert_eq!(deploy(&test).1["spec"]["replicas"], 10);
}

#[test]
fn mistakes_in_policies_are_told_when_they_are_written() {
    let test = TestServer::with_namespace();
    let mut two = apply("Object{}");
    two["jsonPatch"] = json!({"expression": "[]"});
    for (mutation, why) in [
        (apply("1"), "must evaluate to Object but got int"),
        (patch("Object{}"), "must evaluate to list(JSONPatch) but got Object"),
        (apply("Object{"), "compilation failed"),
        (json!({"patchType": "Merge"}), "supported values: \"ApplyConfiguration\", \"JSONPatch\""),
        (two, "must not be specified when patchType is ApplyConfiguration"),
    ] {
        let path = format!("{GROUP}/mutatingadmissionpolicies");
        let (code, refused) = test.call("POST", &path, &policy("a", &[mutation]));
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(code == 422 && message.contains(why), "{why}: {message}");
    }
}
