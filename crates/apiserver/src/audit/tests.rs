//! What the audit log tells, and what it keeps to itself.

use std::io::Write;
use std::sync::Arc;

use convoy_store::{MemoryBackend, Settings};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::access::tests::World;
use crate::access::{Access, Authorization, Peer, Signer, TokenFile};
use crate::object_meta::Store;
use crate::server::{Limits, Server};

/// A file in memory.
#[derive(Clone, Default)]
struct Sheet(Arc<Mutex<Vec<u8>>>);

impl Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sheet {
    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn audited(policy: &str) -> (World, Arc<Auditor>, Sheet) {
    let sheet = Sheet::default();
    let policy = Policy::parse(policy).unwrap();
    let auditor = Auditor::start(policy, Box::new(sheet.clone()), 1_000).unwrap();
    let world = World::under(Authorization::Rbac, Some(Arc::clone(&auditor)));
    (world, auditor, sheet)
}

const BODIES: &str = "{kind: Policy, apiVersion: audit.k8s.io/v1, omitStages: [RequestReceived], \
                      rules: [{level: None, nonResourceURLs: ['/healthz*']}, {level: RequestResponse}]}";

#[test]
fn a_line_tells_who_did_what_and_what_came_of_it() {
    let (world, auditor, sheet) = audited(BODIES);
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}});
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    world.send("root-token", "POST", path, &[("audit-id", "id-1"), ("user-agent", "me/1")], &map);
    world.request("ada-token", "GET", "/api/v1/nodes/n", &Value::Null);
    world.request("wrong", "GET", "/api/v1/nodes/n", &Value::Null);
    world.request("", "GET", "/healthz", &Value::Null);
    auditor.flush();
    let lines = sheet.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let first = &lines[0];
    assert_eq!(
        (&first["kind"], &first["apiVersion"], &first["level"], &first["stage"]),
        (
            &json!("Event"),
            &json!("audit.k8s.io/v1"),
            &json!("RequestResponse"),
            &json!("ResponseComplete")
        )
    );
    assert_eq!((&first["auditID"], &first["requestURI"]), (&json!("id-1"), &json!(path)));
    assert_eq!((&first["verb"], &first["user"]["username"]), (&json!("create"), &json!("root")));
    assert_eq!((&first["sourceIPs"], &first["userAgent"]), (&json!(["192.0.2.7"]), &json!("me/1")));
    assert_eq!(first["objectRef"]["name"], "m");
    assert_eq!(first["objectRef"]["resource"], "configmaps");
    assert_eq!(first["requestObject"], map);
    assert_eq!(first["responseObject"]["kind"], "ConfigMap");
    assert_eq!(first["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(first["requestReceivedTimestamp"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(first["annotations"]["authorization.k8s.io/decision"], "allow");
    assert_eq!(lines[1]["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(lines[1]["responseStatus"]["code"], 403);
    assert_eq!(
        (&lines[2]["responseStatus"]["code"], &lines[2]["user"]["username"]),
        (&json!(401), &json!(""))
    );
    assert_eq!(auditor.counts(), Counts { written: 3, dropped: 0 });
}

#[test]
fn impersonation_shows_both_names() {
    let (world, auditor, sheet) = audited(BODIES);
    world.send("root-token", "GET", "/api", &[("impersonate-user", "bob")], &Value::Null);
    auditor.flush();
    let lines = sheet.lines();
    assert_eq!(lines[0]["user"]["username"], "root");
    assert_eq!(lines[0]["impersonatedUser"]["username"], "bob");
}

#[test]
fn tokens_in_the_query_stay_out_of_the_log() {
    let (world, auditor, sheet) = audited(BODIES);
    world.code("root-token", "/api?watch=0&access_token=hunter2");
    auditor.flush();
    assert_eq!(sheet.lines()[0]["requestURI"], "/api?watch=0&access_token=REDACTED");
}

#[test]
fn secrets_stay_out_of_the_log() {
    let (world, auditor, sheet) = audited(BODIES);
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"},
        "stringData": {"password": "hunter2"}});
    world.request("root-token", "POST", "/api/v1/namespaces/default/secrets", &secret);
    let request =
        json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}});
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let (_, answer) = world.request("root-token", "POST", path, &request);
    let token = answer["status"]["token"].as_str().unwrap();
    let review = json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
        "spec": {"token": token}});
    world.request("root-token", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", &review);
    auditor.flush();
    let lines = sheet.lines();
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert_eq!(line["level"], "Metadata", "{line}");
        let text = line.to_string();
        for hidden in ["hunter2", "root-token", token] {
            assert!(!text.contains(hidden), "{text}");
        }
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = "
kind: Policy
apiVersion: audit.k8s.io/v1
rules:
- {level: None, users: [system:apiserver]}
- {level: Request, verbs: [create], resources: [{group: '', resources: [secrets]}], namespaces: [a]}
- {level: RequestResponse, userGroups: [dev], resources: [{group: apps, resources: ['*/scale']}]}
- {level: Metadata, resources: [{group: ''}], omitStages: [RequestReceived]}
- {level: Request, nonResourceURLs: ['/api*']}
";
    let policy = Policy::parse(policy).unwrap();
    let caller = Caller { name: "x".into(), groups: vec!["dev".into()], ..Caller::default() };
    let level = |method: &str, path: &str| {
        let info = RequestInfo::read(method, path, &crate::query::Query::default());
        policy.choose(&caller, &info).level
    };
    let cases = [
        ("POST", "/api/v1/namespaces/a/secrets", Level::Request),
        ("POST", "/api/v1/namespaces/b/secrets", Level::Metadata),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/d/scale", Level::RequestResponse),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/d", Level::None),
        ("GET", "/api/v1/pods", Level::Metadata),
        ("GET", "/apis", Level::Request),
        ("GET", "/metrics", Level::None),
    ];
    for (method, path, expected) in cases {
        assert_eq!(level(method, path), expected, "{method} {path}");
    }
    assert_eq!(policy.choose(&Caller::server(), &RequestInfo::default()).level, Level::None);
}

#[test]
fn policies_that_say_nothing_clear_are_refused() {
    for text in [
        "{kind: Policy}",
        "{kind: Policy, apiVersion: audit.k8s.io/v1, rules: [{users: [a]}]}",
        "{kind: Policy, apiVersion: audit.k8s.io/v1, rules: [{level: Everything}]}",
        "{kind: Policy, apiVersion: audit.k8s.io/v1, rules: [{level: None, namespaces: [a], nonResourceURLs: ['/x']}]}",
        "[",
    ] {
        assert!(Policy::parse(text).is_err(), "{text}");
    }
}

/// Takes no byte before it is told to.
struct Stuck(std::sync::mpsc::Receiver<()>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_disk_costs_lines_and_no_answers() {
    let (release, stuck) = std::sync::mpsc::channel();
    let auditor = Auditor::start(Policy::metadata(), Box::new(Stuck(stuck)), 4).unwrap();
    let world = World::under(Authorization::Rbac, Some(Arc::clone(&auditor)));
    for _ in 0..50 {
        assert_eq!(world.code("", "/healthz"), 200);
    }
    assert!(auditor.counts().dropped >= 50, "{:?}", auditor.counts());
    drop(release);
    auditor.flush();
    let counts = auditor.counts();
    assert_eq!(counts.written + counts.dropped, 100, "{counts:?}");
}

#[test]
fn a_watch_is_logged_when_it_begins_and_when_it_ends() {
    let (world, auditor, sheet) = audited(BODIES);
    world.test.server.end_watches();
    world.request("root-token", "GET", "/api/v1/pods?watch=1", &Value::Null);
    auditor.flush();
    let stages: Vec<Value> = sheet.lines().iter().map(|line| line["stage"].clone()).collect();
    assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);
}

/// A machine that has no chance to give, which nobody expects.
#[derive(Debug)]
struct NoChance;

impl Surroundings for NoChance {
    fn now(&self) -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn random(&self) -> [u8; 16] {
        panic!("there is none")
    }
}

#[tokio::test]
async fn a_defect_is_logged_as_one() {
    let sheet = Sheet::default();
    let policy = Policy::parse(BODIES).unwrap();
    let auditor = Auditor::start(policy, Box::new(sheet.clone()), 1_000).unwrap();
    let store = Store::open(MemoryBackend, Settings { inline: true, ..Settings::default() });
    let server = Server::new(store.unwrap(), Arc::new(NoChance), Limits::default());
    let signer = Signer::generate().unwrap();
    let mut access = Access::new(Authorization::AlwaysAllow, TokenFile::default(), signer);
    access.audit = Some(Arc::clone(&auditor));
    let server = Arc::new(server.with_access(access));
    let namespace = r#"{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}}"#;
    let request = http::Request::post("/api/v1/namespaces")
        .header("audit-id", "id-1")
        .header("content-type", "application/json")
        .body(http_body_util::Full::new(Bytes::from_static(namespace.as_bytes())))
        .unwrap();
    let peer = Peer { is_local: true, ..Peer::default() };
    let response = crate::handler::handle(&server, request, &peer).await;
    assert_eq!(response.status(), 500);
    auditor.flush();
    let lines = sheet.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["stage"], &lines[0]["auditID"]), (&json!("Panic"), &json!("id-1")));
    assert_eq!(lines[0]["responseStatus"]["code"], 500);
}

#[test]
fn policies_note_what_they_find() {
    let (world, auditor, sheet) = audited(BODIES);
    let group = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "few"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": "has(object.data)", "message": "no data"}],
        "auditAnnotations": [{"key": "name", "valueExpression": "'called ' + object.metadata.name"},
            {"key": "nothing", "valueExpression": "null"}]}});
    let binding = json!({"metadata": {"name": "here"}, "spec": {"policyName": "few",
        "validationActions": ["Audit"]}});
    let kept = |plural: &str, object: &Value| {
        let (code, answer) =
            world.request("root-token", "POST", &format!("{group}/{plural}"), object);
        assert_eq!(code, 201, "{answer}");
    };
    kept("validatingadmissionpolicies", &policy);
    kept("validatingadmissionpolicybindings", &binding);
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}});
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    assert_eq!(world.request("root-token", "POST", path, &map).0, 201, "it is not refused");
    auditor.flush();
    let line = sheet.lines().pop().unwrap();
    let notes = &line["annotations"];
    assert_eq!(notes["few/name"], "called m");
    assert!(notes["few/nothing"].is_null());
    let found = notes["validation.policy.admission.k8s.io/validation_failure"].as_str().unwrap();
    let found: Value = serde_json::from_str(found).unwrap();
    let expected = json!([{"message": "no data", "policy": "few", "binding": "here",
        "expressionIndex": 0, "validationActions": ["Audit"]}]);
    assert_eq!(found, expected);
}
