//! Admission webhooks: served over TLS by a Go program as operators serve theirs, registered
//! with kubectl, and felt by kubectl.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clients::go_program;
use crate::running::Running;

/// The program that serves webhooks, and what it was asked.
struct Webhooks {
    child: Child,
    url: String,
    authority: String,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Webhooks {
    fn start() -> Self {
        let mut command = Command::new(go_program("manager"));
        let mut child = command.arg("webhooks").stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&calls);
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| noted.lock().unwrap().push(line));
        });
        let text = |field: &str| first[field].as_str().unwrap().to_owned();
        Self { child, url: text("url"), authority: text("caBundle"), calls }
    }

    /// Registers one webhook on ConfigMaps. `more` changes what a webhook here usually says.
    fn register(&self, running: &Running, kind: &str, path: &str, more: &Value) {
        running.kubectl_with("apply -f -", &self.configuration(kind, path, more).to_string());
    }

    fn configuration(&self, kind: &str, path: &str, more: &Value) -> Value {
        let mut hook = json!({
            "name": format!("{path}.example.com"), "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("{}/{path}", self.url), "caBundle": self.authority},
            "rules": [{"operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": [""],
                "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name",
                "operator": "NotIn", "values": ["kube-system"]}]},
        });
        for (field, value) in more.as_object().unwrap() {
            hook[field] = value.clone();
        }
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": path},
            "kind": format!("{kind}WebhookConfiguration"), "webhooks": [hook]})
    }

    /// What was asked since the last look. A call is noted before it is answered, so it comes
    /// out of the pipe soon after.
    fn calls(&self) -> Vec<String> {
        let mut seen = 0;
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let mut calls = self.calls.lock().unwrap();
            if calls.len() == seen {
                return std::mem::take(&mut *calls);
            }
            seen = calls.len();
        }
    }

    fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn webhooks_change_refuse_and_warn() {
    let (running, webhooks) = (Running::start(), Webhooks::start());
    webhooks.register(&running, "Mutating", "default", &json!({}));
    webhooks.register(&running, "Validating", "validate", &json!({}));
    running.kubectl("create configmap a --from-literal=fixed=1");
    assert_eq!(running.kubectl("get configmap a -o jsonpath={.metadata.labels.defaulted}"), "yes");
    let refused = running.refused("create configmap b --from-literal=forbidden=1", "");
    assert_eq!(
        refused.trim(),
        "error: failed to create configmap: admission webhook \"validate.example.com\" denied the request: data.forbidden is not for maps"
    );
    running.refused("get configmap b", "");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {forbidden: \"1\"}\n";
    let refused = running.refused("apply -f -", map);
    assert_eq!(
        refused.trim(),
        "Error from server (Forbidden): error when creating \"STDIN\": admission webhook \"validate.example.com\" denied the request: data.forbidden is not for maps"
    );
    let output = running.try_kubectl("create configmap d --from-literal=odd=1", "");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "Warning: data.odd is odd\n");
    let refused =
        running.refused(r#"patch configmap a --type=merge -p '{"data":{"fixed":"2"}}'"#, "");
    assert!(refused.contains("denied the request: data.fixed was \"1\" and stays so"), "{refused}");
    running.kubectl("label configmap a protected=yes");
    let refused = running.refused("delete configmap a", "");
    assert!(refused.contains("denied the request: it is protected"), "{refused}");
    running.kubectl("label configmap a protected-");
    running.kubectl("delete configmap a");
    running.kubectl("delete validatingwebhookconfiguration validate");
    running.kubectl("create configmap b --from-literal=forbidden=1");
}

#[test]
fn webhooks_are_asked_about_what_they_select() {
    let (running, webhooks) = (Running::start(), Webhooks::start());
    running.kubectl("create namespace shop");
    running.kubectl("label namespace shop audited=yes");
    let selecting = |key: &str| json!({"matchLabels": {key: "yes"}});
    let more = json!({
        "namespaceSelector": selecting("audited"), "objectSelector": selecting("mine"),
        "matchConditions": [
            {"name": "by-name", "expression": "request.name.startsWith('x')"},
            {"name": "by-content", "expression": "request.operation == 'DELETE' || has(object.data)"}],
    });
    webhooks.register(&running, "Validating", "allow", &more);
    let map = |namespace: &str, name: &str, label: &str, data: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}, labels: {{mine: \"{label}\"}}}}\n{data}\n"
        );
        running.kubectl_with("create -f -", &text);
    };
    map("default", "x-elsewhere", "yes", "data: {a: b}");
    map("shop", "x-not-mine", "no", "data: {a: b}");
    map("shop", "y-misnamed", "yes", "data: {a: b}");
    map("shop", "x-empty", "yes", "");
    map("shop", "x-meant", "yes", "data: {a: b}");
    running.kubectl("create secret generic x -n shop");
    running.kubectl("delete configmap x-meant -n shop");
    let expected = [
        "/allow CREATE configmaps x-meant dryRun: false",
        "/allow DELETE configmaps x-meant dryRun: false",
    ];
    assert_eq!(webhooks.calls(), expected);
    let unknown =
        json!({"matchConditions": [{"name": "lost", "expression": "object.data.lost == '1'"}]});
    webhooks.register(&running, "Validating", "allow", &unknown);
    let refused = running.refused("create configmap z --from-literal=a=b", "");
    assert!(refused.contains("configmaps \"z\" is forbidden"), "{refused}");
    let broken = json!({"matchConditions": [{"name": "broken", "expression": "object.("}]});
    let broken = webhooks.configuration("Validating", "broken", &broken).to_string();
    let refused = running.refused("create -f -", &broken);
    assert!(
        refused.contains("webhooks[0].matchConditions[0].expression: Invalid value: \"object.(\": compilation failed"),
        "{refused}"
    );
    assert_eq!(webhooks.calls(), [""; 0]);
}

#[test]
fn a_webhook_that_fails_counts_as_its_policy_says() {
    let (running, mut webhooks) = (Running::start(), Webhooks::start());
    let slow = |policy: &str| {
        let more = json!({"failurePolicy": policy, "timeoutSeconds": 1});
        webhooks.register(&running, "Validating", "slow", &more);
    };
    slow("Fail");
    let begun = Instant::now();
    let refused = running.refused("create configmap a", "");
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    let expected = format!(
        "failed calling webhook \"slow.example.com\": failed to call webhook: Post \"{}/slow?timeout=1s\": context deadline exceeded",
        webhooks.url
    );
    assert!(refused.contains(&expected), "{refused}");
    slow("Ignore");
    running.kubectl("create configmap a");
    webhooks.register(&running, "Validating", "allow", &json!({"failurePolicy": "Fail"}));
    running.kubectl("create configmap b");
    webhooks.stop();
    let refused = running.refused("create configmap c", "");
    assert!(
        refused
            .contains("failed calling webhook \"allow.example.com\": failed to call webhook: Post")
            && refused.contains("refused"),
        "{refused}"
    );
    webhooks.register(&running, "Validating", "allow", &json!({"failurePolicy": "Ignore"}));
    running.kubectl("create configmap c");
    assert_eq!(running.kubectl("get configmaps a b c -o name").lines().count(), 3);
}

#[test]
fn only_its_own_authority_speaks_for_a_webhook() {
    let (running, webhooks) = (Running::start(), Webhooks::start());
    let stranger = Webhooks::start();
    let more = json!({"clientConfig": {"url": format!("{}/allow", webhooks.url), "caBundle": stranger.authority}});
    webhooks.register(&running, "Validating", "allow", &more);
    let refused = running.refused("create configmap a", "");
    assert!(refused.contains("invalid peer certificate"), "{refused}");
    assert_eq!(webhooks.calls(), [""; 0]);
}

#[test]
fn dry_runs_reach_webhooks_and_leave_nothing() {
    let (running, webhooks) = (Running::start(), Webhooks::start());
    webhooks.register(&running, "Mutating", "default", &json!({"sideEffects": "NoneOnDryRun"}));
    let shown = "create configmap a --dry-run=server -o jsonpath={.metadata.labels.defaulted}";
    assert_eq!(running.kubectl(shown), "yes");
    running.refused("get configmap a", "");
    running.kubectl("create configmap a");
    let expected =
        ["/default CREATE configmaps a dryRun: true", "/default CREATE configmaps a dryRun: false"];
    assert_eq!(webhooks.calls(), expected);
    let effects = webhooks.configuration("Mutating", "first", &json!({"sideEffects": "Some"}));
    let refused = running.refused("create -f -", &effects.to_string());
    assert!(
        refused.contains("webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\""),
        "{refused}"
    );
}

#[test]
fn a_webhook_may_see_what_later_ones_did() {
    let (running, webhooks) = (Running::start(), Webhooks::start());
    let trail = |name: &str| {
        running.kubectl(&format!("create configmap {name}"));
        running
            .kubectl(&format!("get configmap {name} -o jsonpath={{.metadata.annotations.trail}}"))
    };
    webhooks.register(&running, "Mutating", "first", &json!({}));
    webhooks.register(&running, "Mutating", "second", &json!({"reinvocationPolicy": "IfNeeded"}));
    assert_eq!(trail("in-order"), "12");
    webhooks.register(&running, "Mutating", "first", &json!({"reinvocationPolicy": "IfNeeded"}));
    assert_eq!(trail("once-more"), "121");
    let unasked = json!({"reinvocationPolicy": "IfNeeded", "matchConditions": [
        {"name": "second-was-there", "expression": "has(object.metadata.annotations)"}]});
    webhooks.register(&running, "Mutating", "first", &unasked);
    assert_eq!(trail("not-asked-before"), "2");
}

/// Policies need no server of their own: kubectl shows what they say.
#[test]
fn policies_refuse_and_warn() {
    let running = Running::start();
    let policy = r#"{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "few"}, "spec": {"matchConstraints": {"resourceRules": [
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
             "resources": ["deployments"]}]},
            "validations": [{"expression": "object.spec.replicas <= 5",
                "messageExpression": "'no more than 5, not ' + string(object.spec.replicas)"}]}}"#;
    let binding = |actions: &str| {
        format!(
            r#"{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {{"name": "here"}}, "spec": {{"policyName": "few",
            "validationActions": [{actions}]}}}}"#
        )
    };
    running.kubectl_with("apply -f -", policy);
    running.kubectl_with("apply -f -", &binding("\"Deny\""));
    running.kubectl("create deployment web --image example/web");
    let refused = running.refused("create deployment big --image example/web --replicas 6", "");
    let said = "deployments.apps \"big\" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'here' denied request: no more than 5, not 6";
    assert!(refused.contains(said), "{refused}");
    running.kubectl_with("apply -f -", &binding("\"Warn\""));
    let output = running.try_kubectl("create deployment big --image example/web --replicas 6", "");
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{warned}");
    let said = "Warning: Validation failed for ValidatingAdmissionPolicy 'few' with binding 'here': no more than 5, not 6";
    assert!(warned.contains(said), "{warned}");
}

/// Lamps, whose power is told in watts and later in thousandths of one.
fn lamps(webhooks: &Webhooks) -> Value {
    let version = |name: &str, field: &str, stored: bool| {
        json!({"name": name, "served": true, "storage": stored, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {"type": "object",
                "properties": {field: {"type": "integer"}}}}}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.lamps.example.com"},
        "spec": {"group": "lamps.example.com", "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [version("v1", "watts", true), version("v2", "milliwatts", false)],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"url": format!("{}/convert", webhooks.url),
                    "caBundle": webhooks.authority}}}}})
}

#[test]
fn a_webhook_on_another_version_sees_and_changes_objects_in_that_version() {
    let (running, webhooks) = (Running::start(), Webhooks::start());
    running.kubectl_with("create -f -", &lamps(&webhooks).to_string());
    running.kubectl("wait --for=condition=Established crd/lamps.lamps.example.com --timeout=10s");
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["lamps.example.com"],
        "apiVersions": ["v2"], "resources": ["lamps"]}]);
    let lamp = |name: &str| {
        json!({"apiVersion": "lamps.example.com/v1", "kind": "Lamp", "metadata": {"name": name},
            "spec": {"watts": 60}})
        .to_string()
    };
    let watts = |name: &str| {
        running
            .kubectl(&format!("get lamps.v1.lamps.example.com {name} -o jsonpath={{.spec.watts}}"))
    };
    webhooks.register(&running, "Mutating", "brighten", &json!({"rules": rules}));
    let output = running.try_kubectl("create -f -", &lamp("equivalent"));
    let warned = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && warned.contains("asked for in v1"), "{warned}");
    assert_eq!(watts("equivalent"), "61");
    let exact = json!({"rules": rules, "matchPolicy": "Exact"});
    webhooks.register(&running, "Mutating", "brighten", &exact);
    running.kubectl_with("create -f -", &lamp("exact"));
    assert_eq!(watts("exact"), "60");
}

#[test]
fn versions_of_a_kind_are_converted_by_its_webhook() {
    let (running, mut webhooks) = (Running::start(), Webhooks::start());
    running.kubectl_with("create -f -", &lamps(&webhooks).to_string());
    running.kubectl("wait --for=condition=Established crd/lamps.lamps.example.com --timeout=10s");
    let lamp = |version: &str, name: &str, field: &str, power: u32| {
        json!({"apiVersion": format!("lamps.example.com/{version}"), "kind": "Lamp",
            "metadata": {"name": name}, "spec": {field: power}})
        .to_string()
    };
    let shown = |version: &str, name: &str| {
        running.kubectl(&format!(
            "get lamps.{version}.lamps.example.com {name} -o jsonpath={{.apiVersion}}:{{.spec}}"
        ))
    };
    running.kubectl_with("create -f -", &lamp("v1", "old", "watts", 60));
    assert_eq!(webhooks.calls(), [""; 0], "it is stored as it came");
    assert_eq!(shown("v2", "old"), r#"lamps.example.com/v2:{"milliwatts":60000}"#);
    let made = running.kubectl_with("create -o yaml -f -", &lamp("v2", "new", "milliwatts", 5000));
    assert!(made.contains("milliwatts: 5000"), "{made}");
    assert_eq!(shown("v1", "new"), r#"lamps.example.com/v1:{"watts":5}"#);
    let brighter = lamp("v2", "new", "milliwatts", 6000);
    running.kubectl_with("apply --server-side --force-conflicts -f -", &brighter);
    let patch =
        r#"patch lamps.v2.lamps.example.com old --type=merge -p {"spec":{"milliwatts":7000}}"#;
    running.kubectl(patch);
    assert_eq!(shown("v1", "old"), r#"lamps.example.com/v1:{"watts":7}"#);
    let listed =
        running.kubectl("get lamps.v2.lamps.example.com -o jsonpath={.items[*].spec.milliwatts}");
    assert_eq!(listed, "6000 7000");
    // From the beginning, and again as it happened.
    for from in ["", "&resourceVersion=1"] {
        let path = "/apis/lamps.example.com/v2/namespaces/default/lamps?watch=1&timeoutSeconds=1";
        let seen = running.kubectl(&format!("get --raw {path}{from}"));
        let last = seen.lines().filter(|line| line.contains("\"milliwatts\":7000")).count();
        assert!(last == 1 && !seen.contains("\"watts\""), "{seen}");
    }
    running.kubectl_with("create -f -", &lamp("v1", "broken", "watts", 1));
    let refused = running.refused("get lamps.v2.lamps.example.com broken", "");
    let said = "conversion webhook for lamps.example.com/v1, Kind=Lamp failed: it is broken";
    assert!(refused.contains(said), "{refused}");
    webhooks.stop();
    let refused = running.refused("get lamps.v2.lamps.example.com old", "");
    assert!(refused.contains("conversion webhook for lamps.example.com/v1"), "{refused}");
    running.kubectl("delete lamps.v1.lamps.example.com old new broken");
}
