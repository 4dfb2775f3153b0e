//! Our answers against those of a real API server, recorded: `cargo xtask kubernetes` asks a
//! kube-apiserver about damaged objects and writes down which causes it gave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

use std::collections::BTreeSet;
use std::path::Path;

use convoy_api::object::GroupKind;
use convoy_api::schema;
use serde::Deserialize;
use serde_json::Value;

/// What was asked about one kind of object, and the answers.
#[derive(Deserialize)]
struct Recording {
    /// The objects before they were damaged.
    bases: Vec<Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    base: usize,
    /// The field that was taken away.
    remove: Option<String>,
    /// The field that was given `value`.
    at: Option<String>,
    #[serde(default)]
    value: Value,
    /// Field, message and reason of every cause; none if the object was accepted.
    causes: BTreeSet<(String, String, String)>,
}

#[test]
fn objects_are_refused_for_the_causes_that_a_real_server_gives() {
    let directory = std::env::var("CONVOY_RECORDINGS")
        .unwrap_or_else(|_| format!("{}/tests/kubernetes", env!("CARGO_MANIFEST_DIR")));
    let mut differences = Vec::new();
    for file in std::fs::read_dir(directory).unwrap() {
        differences.extend(compare(&file.unwrap().path()));
    }
    let shown = differences.iter().take(20).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(differences.is_empty(), "{} differences:\n{shown}", differences.len());
}

fn compare(file: &Path) -> Vec<String> {
    let recording: Recording = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let cases = recording.cases.iter().filter_map(|case| {
        let object = damaged(&recording.bases[case.base], case);
        let ours = causes(&object);
        if ours == case.causes {
            return None;
        }
        let only = |one: &BTreeSet<_>, other: &BTreeSet<_>| format!("{:#?}", one - other);
        let change = (&case.remove, &case.at, &case.value);
        let (extra, missing) = (only(&ours, &case.causes), only(&case.causes, &ours));
        Some(format!("{}: {change:?}\nours only: {extra}\ntheirs only: {missing}", object["kind"]))
    });
    cases.collect()
}

fn damaged(base: &Value, case: &Case) -> Value {
    let mut object = base.clone();
    if let Some(place) = &case.at {
        *object.pointer_mut(place).unwrap() = case.value.clone();
    }
    if let Some(place) = &case.remove {
        let (parent, field) = place.rsplit_once('/').unwrap();
        let field = field.replace("~1", "/").replace("~0", "~");
        match object.pointer_mut(parent).unwrap() {
            Value::Object(fields) => drop(fields.shift_remove(&field)),
            Value::Array(items) => drop(items.remove(field.parse().unwrap())),
            other => panic!("{place} is below {other}"),
        }
    }
    object
}

fn causes(object: &Value) -> BTreeSet<(String, String, String)> {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let kind = object["kind"].as_str().unwrap();
    let kind = GroupKind { group: group.into(), kind: kind.into() };
    let schema = schema::of(&kind, version).unwrap_or_else(|| panic!("{kind} {version}"));
    let errors = schema.validate(object, None);
    let cause = |error: schema::FieldError| {
        (error.reported_field().to_owned(), error.message, error.reason.code().to_owned())
    };
    errors.into_iter().map(cause).collect()
}
