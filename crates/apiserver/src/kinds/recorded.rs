//! What a real API server (v1.36) said to the same requests: objects with one thing changed,
//! created and updated. `CONVOY_KINDS` names a file with more cases; differences are then
//! written beside it instead of failing the test.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::testing::TestServer;

/// Values that every server draws for itself.
const DRAWN: [&str; 6] = [
    "/metadata/uid",
    "/spec/clusterIP",
    "/spec/healthCheckNodePort",
    "/spec/ports/0/nodePort",
    "/spec/ports/1/nodePort",
    "/spec/selector/matchLabels/batch.kubernetes.io~1controller-uid",
];

#[test]
fn requests_are_answered_as_a_real_server_does() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/kinds.jsonl");
    let other = std::env::var_os("CONVOY_KINDS");
    let text = std::fs::read_to_string(other.as_ref().map_or(&*ours, Path::new)).expect("cases");
    let server = TestServer::new();
    server.call("POST", "/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
    let (mut cases, mut differences) = (0, Vec::new());
    for line in text.lines() {
        cases += 1;
        let case: Value = serde_json::from_str(line).expect("a case");
        if let Some(difference) = compare(&server, &case) {
            differences.push(difference);
        }
    }
    assert!(cases > 0, "no cases");
    if let Some(other) = other {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (kind, _) in &differences {
            *counts.entry(kind).or_default() += 1;
        }
        let lines: Vec<String> =
            differences.iter().map(|(kind, text)| format!("{kind}\t{text}")).collect();
        let report = Path::new(&other).with_extension("differences");
        let meta = format!("{cases} cases, {counts:?}");
        std::fs::write(report, format!("{meta}\n{}\n", lines.join("\n"))).expect("a report");
        return;
    }
    let shown: Vec<String> = differences.iter().take(5).map(|(_, text)| text.clone()).collect();
    assert!(differences.is_empty(), "{} of {cases}: {}", differences.len(), shown.join("\n\n"));
}

/// The differences between our response and the recorded one.
fn compare(server: &TestServer, case: &Value) -> Option<(&'static str, String)> {
    let path = case["path"].as_str().expect("a path");
    let recorded = if case["update"].is_null() { &case["object"] } else { &case["live"] };
    let (code, answer) = match case["update"] {
        Value::Null => server.call("POST", &format!("{path}?dryRun=All"), &case["body"]),
        _ => update(server, path, case),
    };
    let answer = redrawn(&answer, recorded);
    let wanted = case["code"].as_u64().expect("a code");
    let body = if case["update"].is_null() { &case["body"] } else { &case["update"] };
    let is_success = |code: u64| code < 300;
    match (is_success(wanted), is_success(code.into())) {
        (true, false) => Some(("refused", format!("{path} {}\n  body {body}", answer["message"]))),
        (false, true) => Some(("accepted", format!("{path} {}\n  body {body}", case["message"]))),
        (false, false) if worded(&answer) == worded(case) => None,
        (false, false) => Some((
            "worded",
            format!(
                "{path}\n  wanted {}\n  given  {}\n  body {body}",
                case["message"], answer["message"]
            ),
        )),
        (true, true) => {
            let (wanted, given) = (settled(&case["object"]), settled(&answer));
            let differing = difference(&wanted, &given, "");
            differing.map(|text| ("stored", format!("{path} {text}\n  body {body}")))
        }
    }
}

/// What a refusal says, without the dump of differences that follows it.
fn worded(answer: &Value) -> &str {
    let message = answer["message"].as_str().unwrap_or_default();
    message.split('\n').next().unwrap_or_default()
}

fn update(server: &TestServer, path: &str, case: &Value) -> (u16, Value) {
    let (code, created) = server.call("POST", path, &case["body"]);
    if code != 201 {
        return (code, created);
    }
    let name = created["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut wanted = redrawn_to(&case["update"], &case["live"], &created);
    if case["needs_rv"] == true {
        wanted["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    }
    let (code, answer) = server.call("PUT", &format!("{path}/{name}?dryRun=All"), &wanted);
    let delete = format!("{path}/{name}?gracePeriodSeconds=0&propagationPolicy=Background");
    server.call("DELETE", &delete, &Value::Null);
    (code, redrawn_to(&answer, &created, &case["live"]))
}

/// A response with the recorded server's values instead of ours.
fn redrawn(answer: &Value, recorded: &Value) -> Value {
    if answer["kind"] == "Status" { answer.clone() } else { redrawn_to(answer, answer, recorded) }
}

fn redrawn_to(object: &Value, from: &Value, to: &Value) -> Value {
    let mut text = object.to_string();
    for place in DRAWN {
        if let (Some(from), Some(to)) = (from.pointer(place), to.pointer(place)) {
            let (from, to) = (from.to_string(), to.to_string());
            let bare = |text: &str| text.trim_matches('"').to_owned();
            if from != to && bare(&from).len() > 3 {
                text = text.replace(&bare(&from), &bare(&to));
            }
        }
    }
    serde_json::from_str(&text).expect("numbers for numbers, texts for texts")
}

/// Without what depends on time and caller.
fn settled(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "creationTimestamp", "managedFields", "resourceVersion"] {
            metadata.remove(field);
        }
    }
    if object["kind"] == "CertificateSigningRequest" {
        for field in ["username", "groups", "uid", "extra"] {
            object["spec"].as_object_mut().map(|spec| spec.remove(field));
        }
    }
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("lastPhaseTransitionTime");
    }
    object
}

fn difference(wanted: &Value, given: &Value, at: &str) -> Option<String> {
    match (wanted, given) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                difference(&wanted[key.as_str()], &given[key.as_str()], &format!("{at}.{key}"))
            })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (a, b))| difference(a, b, &format!("{at}[{index}]")))
        }
        _ if wanted == given => None,
        _ => Some(format!("{at}: wanted {wanted}, given {given}")),
    }
}
