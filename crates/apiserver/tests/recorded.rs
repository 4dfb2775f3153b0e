//! What Kubernetes' own Go code makes of the same inputs: protobuf bodies, JSON bodies with
//! faults, quantities, and strategic merge patches. The cases in `recorded/` were made with
//! random objects of every kind, k8s.io/api v0.37.2; `CONVOY_RECORDED` names a directory with
//! more of them.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_apiserver::canonical::canonicalise;
use convoy_apiserver::decode::{decode_json, fit};
use convoy_apiserver::patch::strategic_merge;
use convoy_apiserver::protobuf;
use convoy_apiserver::types::shape_of;
use serde_json::Value;

/// Runs `check` on every case of the files that begin with `name`.
fn for_each(name: &str, check: impl Fn(&Value) -> Result<(), String>) {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let directory = std::env::var_os("CONVOY_RECORDED").map_or(ours, PathBuf::from);
    let (mut cases, mut failures) = (0, Vec::new());
    for entry in std::fs::read_dir(directory).expect("recorded cases") {
        let path = entry.expect("readable").path();
        if !path.file_name().is_some_and(|found| found.to_string_lossy().starts_with(name)) {
            continue;
        }
        for line in std::fs::read_to_string(&path).expect("text").lines() {
            cases += 1;
            if let Err(failure) = check(&serde_json::from_str(line).expect("a case")) {
                failures.push(failure);
            }
        }
    }
    assert!(cases > 0, "no cases of {name}");
    let first: Vec<&str> = failures.iter().take(5).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} of {cases} cases: {}", failures.len(), first.join("\n\n"));
}

fn text<'c>(case: &'c Value, field: &str) -> &'c str {
    case[field].as_str().unwrap_or_default()
}

#[test]
fn protobuf_bodies_give_the_json_of_the_same_object() {
    for_each("protobuf", |case| {
        let body = STANDARD.decode(text(case, "body")).expect("base64");
        let wanted = case["json"].to_string();
        let found = match protobuf::decode(&body) {
            Ok(received) => received.value.to_string(),
            Err(error) => error.to_string(),
        };
        same(&wanted, &found)
    });
}

#[test]
fn json_bodies_are_decoded_and_encoded_as_go_does() {
    for_each("json", |case| {
        let shape = shape_of(text(case, "apiVersion"), text(case, "kind")).expect("a kind");
        let decoded = decode_json(shape, text(case, "input").as_bytes());
        let (Ok(decoded), None) = (&decoded, case["error"].as_str()) else {
            return same_error(case, decoded.err().map(|error| error.to_string()));
        };
        let unknown = decoded.unknown.iter().map(|path| format!("unknown field {path:?}"));
        let repeated = decoded.duplicates.iter().map(|path| format!("duplicate field {path:?}"));
        let mut found: Vec<String> = unknown.chain(repeated).collect();
        let mut wanted: Vec<&str> =
            case["findings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        found.sort();
        wanted.sort_unstable();
        let mut value = decoded.value.clone();
        canonicalise(shape, &mut value);
        same(&wanted.join(", "), &found.join(", "))?;
        same(&plain(case, "output"), &value.to_string())
    });
}

/// That both refuse it counts; the words need not be the same.
fn same_error(case: &Value, found: Option<String>) -> Result<(), String> {
    match (case["error"].as_str(), found) {
        (Some(_), Some(_)) => Ok(()),
        (wanted, found) => Err(format!("{case}\nwanted {wanted:?}\nfound {found:?}")),
    }
}

#[test]
fn quantities_have_the_spelling_that_go_gives_them() {
    for_each("quantity", |case| {
        let shape = shape_of("v1", "ResourceQuota").expect("a kind");
        let body = serde_json::json!({"spec": {"hard": {"cpu": case["text"]}}}).to_string();
        let found = decode_json(shape, body.as_bytes()).map_or(Value::Null, |decoded| {
            let mut value = decoded.value;
            canonicalise(shape, &mut value);
            value["spec"]["hard"]["cpu"].take()
        });
        same(&case["stored"].to_string(), &found.to_string())
            .map_err(|it| format!("{}\n{it}", case["text"]))
    });
}

#[test]
fn strategic_merges_give_what_upstream_gives() {
    for_each("patch", |case| {
        let shape = shape_of(text(case, "apiVersion"), text(case, "kind")).expect("a kind");
        let merged = strategic_merge(shape, &case["current"], &case["patch"]);
        let (Ok(mut merged), None) = (merged.clone(), case["error"].as_str()) else {
            return same_error(case, merged.err().map(|error| error.to_string()));
        };
        fit(shape, &mut merged).map_err(|error| error.to_string())?;
        canonicalise(shape, &mut merged);
        same(&plain(case, "result"), &merged.to_string())
            .map_err(|it| format!("{}\n{}\n{it}", case["current"], case["patch"]))
    });
}

/// The text of a recorded object without the escapes that Go writes for HTML's sake.
fn plain(case: &Value, field: &str) -> String {
    serde_json::from_str::<Value>(text(case, field)).expect("an object").to_string()
}

/// Compares two texts, and shows where they part.
fn same(wanted: &str, found: &str) -> Result<(), String> {
    let at = wanted.bytes().zip(found.bytes()).take_while(|(a, b)| a == b).count();
    if at == wanted.len().max(found.len()) {
        return Ok(());
    }
    let around = |text: &str| {
        let bytes = &text.as_bytes()[at.saturating_sub(120).min(text.len())..];
        String::from_utf8_lossy(&bytes[..bytes.len().min(240)]).into_owned()
    };
    Err(format!("wanted …{}\nfound  …{}", around(wanted), around(found)))
}
