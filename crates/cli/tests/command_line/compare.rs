//! How the answer to a vector is held against what it should be. Lists that mean sets are
//! compared as sets, maps by the fields that a vector names.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::binary::Run;

/// The order in the answer does not matter.
const SETS: [&str; 17] = [
    "start",
    "stopped",
    "roll",
    "remove",
    "blocked",
    "clusters",
    "disrupt",
    "delete",
    "adopt",
    "release",
    "deletePods",
    "rollout",
    "waiting",
    "timedOut",
    "failed",
    "removed",
    "members",
];
/// An extra entry in the answer is a failure.
const EXACT: [&str; 1] = ["scale"];
/// The expected text is a part of the answer's.
const PARTS: [&str; 1] = ["notDisruptable"];
/// Counts of lists that the answer may carry under another key.
const COUNTS: [(&str, &str); 5] = [
    ("rollCount", "roll"),
    ("removeCount", "remove"),
    ("blockedCount", "blocked"),
    ("clusterCount", "clusters"),
    ("disruptCount", "disrupt"),
];

/// What is wrong with the answer to one vector; empty if nothing.
pub(crate) fn problems(expect: &Map<String, Value>, run: &Run) -> Vec<String> {
    let Ok(answer) = serde_json::from_str::<Value>(&run.stdout) else {
        return vec![format!("exit {:?} without JSON; stderr: {}", run.code, run.stderr)];
    };
    let said = errors(&answer);
    if let Some(rejected) = expect.get("rejected").and_then(Value::as_str) {
        return rejection(rejected, run.code, &said);
    }
    if run.code != Some(0) {
        return vec![format!("exit {:?}: {said}{}", run.code, run.stderr)];
    }
    let (decision, by_name) = decisions(&answer);
    let mut wrong = Vec::new();
    for (key, want) in expect {
        if key == "skyhooks" {
            for (name, parts) in want.as_object().into_iter().flatten() {
                for (part, value) in parts.as_object().into_iter().flatten() {
                    let got = by_name.get(name).and_then(|decision| decision.get(part));
                    differences(&mut wrong, &format!("{name}.{part}"), part, value, got);
                }
            }
        } else {
            top_level(&mut wrong, key, want, &decision);
        }
    }
    wrong
}

fn rejection(rejected: &str, code: Option<i32>, said: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if code != Some(2) {
        wrong.push(format!("want exit status 2, got {code:?}"));
    }
    if !contains(said, rejected) {
        wrong.push(format!("want an error containing {rejected:?}, got {said:?}"));
    }
    wrong
}

fn top_level(wrong: &mut Vec<String>, key: &str, want: &Value, decision: &Value) {
    let got = decision.get(key);
    let counted = COUNTS.iter().find(|(count, _)| *count == key);
    if let Some((_, list)) = counted {
        let length = decision.get(list).and_then(Value::as_array).map(|list| list.len().into());
        differences(wrong, key, key, want, got.or(length.as_ref()));
    } else if key == "selectedSorted" {
        differences(wrong, key, "members", want, decision.get("selected"));
    } else if want.is_null() {
        if got.is_some_and(|got| !got.is_null()) {
            wrong.push(format!("{key}: must be absent, got {got:?}"));
        }
    } else {
        differences(wrong, key, key, want, got);
    }
}

/// Everything that diagnostics of severity `error` say, in one line.
fn errors(answer: &Value) -> String {
    let text = |found: &Value, key: &str| found[key].as_str().unwrap_or_default().to_owned();
    let found = answer["diagnostics"].as_array().into_iter().flatten();
    let errors = found.filter(|found| found["severity"] == "error");
    let lines = errors.map(|found| {
        format!("{} {}: {}", text(found, "object"), text(found, "field"), text(found, "message"))
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// All decisions merged into one, and merged by the name of the rollout.
fn decisions(answer: &Value) -> (Value, BTreeMap<String, Value>) {
    let mut all = Value::Object(Map::new());
    let mut by_name = BTreeMap::new();
    for rollout in answer["rollouts"].as_array().into_iter().flatten() {
        let name = rollout["object"]["name"].as_str().unwrap_or_default().to_owned();
        merge(&mut all, &rollout["decision"]);
        merge(
            by_name.entry(name).or_insert_with(|| Value::Object(Map::new())),
            &rollout["decision"],
        );
    }
    (all, by_name)
}

/// Maps are merged, lists joined, anything else is replaced.
fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                match into.get_mut(key) {
                    Some(old) => merge(old, value),
                    None => drop(into.insert(key.clone(), value.clone())),
                }
            }
        }
        (Value::Array(into), Value::Array(more)) => into.extend(more.iter().cloned()),
        (into, more) => *into = more.clone(),
    }
}

fn differences(wrong: &mut Vec<String>, path: &str, key: &str, want: &Value, got: Option<&Value>) {
    match want {
        Value::Object(want) if PARTS.contains(&key) => {
            for (name, text) in want {
                let text = text.as_str().unwrap_or_default();
                let have = got.and_then(|got| got.get(name)).and_then(Value::as_str);
                if !have.is_some_and(|have| contains(have, text)) {
                    wrong.push(format!("{path}.{name}: want text with {text:?}, got {have:?}"));
                }
            }
        }
        Value::Array(want) if SETS.contains(&key) => {
            let got = got.and_then(Value::as_array);
            if got.map(|got| sorted(got)) != Some(sorted(want)) {
                wrong.push(format!("{path}: want the set {want:?}, got {got:?}"));
            }
        }
        _ if EXACT.contains(&key) => {
            if got != Some(want) {
                wrong.push(format!("{path}: want exactly {want}, got {got:?}"));
            }
        }
        Value::Object(want) => match got {
            Some(Value::Object(got)) => {
                for (name, value) in want {
                    differences(wrong, &format!("{path}.{name}"), name, value, got.get(name));
                }
            }
            _ => wrong.push(format!("{path}: want {want:?}, got {got:?}")),
        },
        Value::Array(want) if want.first().is_some_and(Value::is_object) => match got {
            Some(Value::Array(got)) if got.len() == want.len() => {
                for (index, (want, got)) in want.iter().zip(got).enumerate() {
                    differences(wrong, &format!("{path}[{index}]"), key, want, Some(got));
                }
            }
            _ => wrong.push(format!("{path}: want {} entries, got {got:?}", want.len())),
        },
        Value::Number(want) => {
            let absent_is_zero = path.starts_with("status.");
            let have = match got {
                None | Some(Value::Null) if absent_is_zero => Some(0.0),
                got => got.and_then(Value::as_f64),
            };
            if have != want.as_f64() {
                wrong.push(format!("{path}: want {want}, got {got:?}"));
            }
        }
        want if got == Some(want) => {}
        Value::Null if got.is_none() => {}
        want => wrong.push(format!("{path}: want {want}, got {got:?}")),
    }
}

fn sorted(list: &[Value]) -> Vec<String> {
    let mut words: Vec<String> = list.iter().map(ToString::to_string).collect();
    words.sort();
    words
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}
