//! Policies as requests meet them.

use serde_json::{Value, json};

use crate::testing::TestServer;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server with one policy about config maps, and its binding.
fn server(spec: &Value, binding: &Value) -> TestServer {
    let test = TestServer::with_namespace();
    let mut whole = json!({"matchConstraints": {"resourceRules": [{"apiGroups": [""],
        "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]}});
    merge(&mut whole, spec);
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "short"}, "spec": whole});
    test.create(&format!("{GROUP}/validatingadmissionpolicies"), &policy);
    let mut bound = json!({"policyName": "short", "validationActions": ["Deny"]});
    merge(&mut bound, binding);
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "spec": bound,
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "everywhere"}});
    test.create(&format!("{GROUP}/validatingadmissionpolicybindings"), &binding);
    test
}

fn merge(into: &mut Value, from: &Value) {
    for (name, value) in from.as_object().into_iter().flatten() {
        into[name] = value.clone();
    }
}

fn put(test: &TestServer, name: &str, word: &str) -> (u16, Value) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": name}}, "data": {"word": word}});
    test.call("POST", MAPS, &map)
}

/// The refusal of a long word under a policy, if it is refused.
fn refusal(spec: &Value, binding: &Value) -> Option<(u16, String, String)> {
    let test = server(spec, binding);
    assert_eq!(put(&test, "short", "abc").0, 201, "{spec}");
    let (code, answer) = put(&test, "long", "abcdefgh");
    let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    (code != 201).then(|| (code, text("reason"), text("message")))
}

fn said(why: &str) -> String {
    format!(
        "configmaps \"long\" is forbidden: ValidatingAdmissionPolicy 'short' with binding \
         'everywhere' denied request: {why}"
    )
}

#[test]
fn what_an_expression_does_not_hold_of_is_refused() {
    let expression = "size(object.data.word) <= 5";
    let invalid = |why: &str| Some((422, "Invalid".to_owned(), said(why)));
    let cases = [
        (
            json!([{"expression": expression}]),
            invalid("failed expression: size(object.data.word) <= 5"),
        ),
        (json!([{"expression": expression, "message": "too long"}]), invalid("too long")),
        (
            json!([{"expression": expression, "message": "too long", "reason": "Forbidden",
                "messageExpression": "'no more than 5 letters, not ' + string(size(object.data.word))"}]),
            Some((403, "Forbidden".to_owned(), said("no more than 5 letters, not 8"))),
        ),
        (
            json!([{"expression": expression, "message": "plain", "messageExpression": "string(object.none)"}]),
            invalid("plain"),
        ),
        (json!([{"expression": "request.operation == 'CREATE'"}]), None),
    ];
    for (validations, want) in cases {
        let got = refusal(&json!({"validations": validations}), &Value::Null);
        assert_eq!(got, want, "{validations}");
    }
}

#[test]
fn an_expression_that_fails_refuses_unless_failures_are_ignored() {
    let expression = "size(object.data.word) <= 5 || object.data.none == ''";
    let validations = json!([{"expression": expression}]);
    let (code, _, message) = refusal(&json!({"validations": validations}), &Value::Null).unwrap();
    let start = said(&format!("expression '{expression}' resulted in error: "));
    assert!(code == 422 && message.starts_with(&start), "{message}");
    let lenient = json!({"validations": validations, "failurePolicy": "Ignore"});
    assert_eq!(refusal(&lenient, &Value::Null), None);
}

#[test]
fn variables_use_each_other_and_conditions_come_first() {
    let variables = json!([{"name": "letters", "expression": "size(object.data.word)"},
        {"name": "twice", "expression": "variables.letters * 2"}]);
    let validations = json!([{"expression": "variables.twice <= 10", "message": "too long"}]);
    let spec = |condition: &str| {
        json!({"variables": variables, "validations": validations,
            "matchConditions": [{"name": "only", "expression": condition}]})
    };
    assert!(refusal(&spec("object.metadata.name != 'other'"), &Value::Null).is_some());
    assert_eq!(refusal(&spec("object.metadata.name == 'other'"), &Value::Null), None);
}

#[test]
fn bindings_narrow_policies_down_and_choose_what_happens() {
    let spec = json!({"validations": [{"expression": "size(object.data.word) <= 5"}]});
    let selecting =
        |app: &str| json!({"matchResources": {"objectSelector": {"matchLabels": {"app": app}}}});
    assert!(refusal(&spec, &selecting("long")).is_some());
    assert_eq!(refusal(&spec, &selecting("other")), None);
    let excluding = json!({"matchResources": {"resourceRules": [{"apiGroups": ["*"],
        "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}],
        "excludeResourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["*"], "resources": ["configmaps"], "resourceNames": ["long"]}]}});
    assert_eq!(refusal(&spec, &excluding), None);
}

#[test]
fn a_policy_may_warn_instead() {
    let spec =
        json!({"validations": [{"expression": "size(object.data.word) <= 5", "message": "long"}]});
    let test = server(&spec, &json!({"validationActions": ["Warn", "Audit"]}));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "long"},
        "data": {"word": "abcdefgh"}});
    let answered =
        test.send("POST", MAPS, &[("content-type", "application/json")], map.to_string());
    assert_eq!(answered.code, 201);
    let want =
        "Validation failed for ValidatingAdmissionPolicy 'short' with binding 'everywhere': long";
    assert_eq!(answered.header("warning"), format!("299 - \"{want}\""));
}

#[test]
fn parameters_are_found_where_the_binding_says() {
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "validations": [{"expression": "size(object.data.word) <= int(params.metadata.labels.most)"}]});
    let by = |reference: Value| json!({"paramRef": reference});
    let named = by(json!({"name": "limits", "parameterNotFoundAction": "Deny"}));
    let test = server(&spec, &named);
    let (code, answer) = put(&test, "long", "abcdefgh");
    let missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!((code, answer["message"].as_str().unwrap()), (422, said(missing).as_str()));
    let limits = |most: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "limits",
            "labels": {"most": most, "of": "words"}}})
    };
    let secrets = "/api/v1/namespaces/default/secrets";
    test.create(secrets, &limits("5"));
    assert_eq!(put(&test, "long", "abcdefgh").0, 422);
    assert_eq!(put(&test, "short", "abc").0, 201);
    let selected = by(json!({"selector": {"matchLabels": {"of": "words"}},
        "parameterNotFoundAction": "Allow"}));
    let test = server(&spec, &selected);
    assert_eq!(put(&test, "free", "abcdefgh").0, 201);
    test.create(secrets, &limits("5"));
    assert_eq!(put(&test, "long", "abcdefgh").0, 422);
}

#[test]
fn policies_that_do_not_compile_are_refused() {
    let test = TestServer::new();
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "broken"},
        "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": "object."}]}});
    let (code, answer) =
        test.call("POST", &format!("{GROUP}/validatingadmissionpolicies"), &policy);
    let message = answer["message"].as_str().unwrap();
    assert_eq!(code, 422, "{answer}");
    assert!(
        message.contains("spec.validations[0].expression: Invalid value: \"object.\": "),
        "{message}"
    );
}

#[test]
fn a_policy_on_another_version_sees_objects_in_that_version() {
    let policy = |match_policy: &str| {
        json!({"matchConstraints": {"matchPolicy": match_policy, "resourceRules": [{
                "apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["*"],
                "resources": ["horizontalpodautoscalers"]}]},
            "validations": [{"expression": "false", "messageExpression":
                "object.apiVersion + ' ' + string(object.spec.metrics[0].resource.target.averageUtilization) \
                 + ' ' + request.kind.version + ' ' + request.requestKind.version"}]})
    };
    let scaler = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3,
        "targetCPUUtilizationPercentage": 40, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}});
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let (code, answer) = server(&policy("Equivalent"), &Value::Null).call("POST", path, &scaler);
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(code == 422 && message.ends_with("autoscaling/v2 40 v2 v1"), "{answer}");
    assert_eq!(server(&policy("Exact"), &Value::Null).call("POST", path, &scaler).0, 201);
}
