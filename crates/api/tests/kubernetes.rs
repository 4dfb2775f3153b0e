//! Our answers against those of a real API server, recorded: `cargo xtask kubernetes` asks a
//! kube-apiserver about damaged objects and writes down which causes it gave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use convoy_api::schema::{FieldError, Schema};
use serde::Deserialize;
use serde_json::Value;

/// What was asked about one kind of object, and the answers.
#[derive(Deserialize)]
struct Recording {
    /// The schemas they were held against at that time, by version and kind.
    schemas: BTreeMap<String, Value>,
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
    causes: Causes,
}

type Causes = BTreeSet<(String, String, String)>;

#[test]
fn objects_are_refused_for_the_causes_that_a_real_server_gives() {
    let directory = std::env::var("CONVOY_RECORDINGS")
        .unwrap_or_else(|_| format!("{}/tests/kubernetes", env!("CARGO_MANIFEST_DIR")));
    let mut differences = Vec::new();
    for file in std::fs::read_dir(directory).unwrap() {
        differences.extend(compare(&file.unwrap().path()));
    }
    let shown = differences.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} differences:\n{shown}", differences.len());
}

fn compare(file: &Path) -> Vec<String> {
    let recording: Recording = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let schemas: BTreeMap<_, _> =
        recording.schemas.iter().map(|(kind, schema)| (kind, Schema::from_json(schema))).collect();
    let cases = recording.cases.iter().filter_map(|case| {
        let object = damaged(&recording.bases[case.base], case);
        let kind = format!("{}/{}", text(&object["apiVersion"]), text(&object["kind"]));
        let ours = causes(&schemas[&kind], &object);
        if ours == case.causes {
            return None;
        }
        let lines = |sign: char, one: &Causes, other: &Causes| {
            let only = one.difference(other);
            let lines = only.map(|(field, message, _)| format!("\n{sign} {field}: {message}"));
            lines.collect::<Vec<_>>().concat()
        };
        let (ours, theirs) = (lines('+', &ours, &case.causes), lines('-', &case.causes, &ours));
        let place = case.at.as_ref().or(case.remove.as_ref());
        Some(format!("{} {place:?} {}{theirs}{ours}", object["kind"], case.value))
    });
    cases.collect()
}

fn damaged(base: &Value, case: &Case) -> Value {
    let mut object = base.clone();
    let Some(place) = case.at.as_ref().or(case.remove.as_ref()) else { return object };
    let (parent, field) = place.rsplit_once('/').unwrap();
    let field = field.replace("~1", "/").replace("~0", "~");
    match (object.pointer_mut(parent).unwrap(), case.at.is_some()) {
        (Value::Object(fields), true) => drop(fields.insert(field, case.value.clone())),
        (Value::Object(fields), false) => drop(fields.shift_remove(&field)),
        (Value::Array(items), true) => items[field.parse::<usize>().unwrap()] = case.value.clone(),
        (Value::Array(items), false) => drop(items.remove(field.parse().unwrap())),
        (other, _) => panic!("{place} is below {other}"),
    }
    object
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn causes(schema: &Schema, object: &Value) -> Causes {
    let errors = schema.validate(object, None);
    let cause = |error: FieldError| {
        (error.reported_field().to_owned(), error.message, error.reason.code().to_owned())
    };
    errors.into_iter().map(cause).collect()
}
