//! Compares answers, apart from the differences that a script admits.

use std::collections::BTreeSet;

use serde_json::Value;

use super::script::{Script, Step};

/// How much of a value is shown.
const SHOWN: usize = 600;

/// How the answers to a script differ. Two recordings of one server may differ in nothing that
/// is compared; ours may differ where the script says so, and must do so still.
pub(crate) fn differences(
    script: &Script,
    wanted: &[Value],
    given: &[Value],
    is_same_server: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    if wanted.len() != script.steps.len() {
        found.push(
            "  the recording is of another script; see cargo xtask kubernetes --record".into(),
        );
        return found;
    }
    for (number, step) in script.steps.iter().enumerate() {
        let (wanted, given) = (compared(step, &wanted[number]), compared(step, &given[number]));
        let mut places = Vec::new();
        walk(&wanted, &given, "", &mut places);
        let total = places.len();
        if !is_same_server && !step.differs.is_empty() {
            let is_admitted = |place: &str| {
                let covers = |at: &String| place.starts_with(at.as_str());
                step.differs.iter().any(|one| one.at.is_empty() || one.at.iter().any(covers))
            };
            places.retain(|(place, _)| !is_admitted(place));
            if total == 0 {
                found.push(format!("  {number} {}: differs no longer", step.ask));
            }
        }
        // Where even the code is another one, the rest is of another kind.
        if let Some(at) = places.iter().position(|(place, _)| place == "/code") {
            let message = format!(
                "\n    wanted {}\n    given  {}",
                shown(&wanted["body"]),
                shown(&given["body"])
            );
            let (place, code) = places.swap_remove(at);
            places = vec![(place, code + &message)];
        }
        found.extend(
            places
                .into_iter()
                .map(|(place, text)| format!("  {number} {}\n    {place}{text}", step.ask)),
        );
    }
    found
}

/// The part of an answer that is compared, and recorded: all of it, or its code and the values
/// that the step names.
pub(crate) fn compared(step: &Step, answer: &Value) -> Value {
    let Some(only) = step.only.as_ref().filter(|_| answer.is_object()) else {
        return answer.clone();
    };
    let mut kept = vec![answer["code"].clone()];
    kept.extend(only.iter().map(|at| answer["body"].pointer(at).cloned().unwrap_or_default()));
    kept.into()
}

fn walk(wanted: &Value, given: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match (wanted, given) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (left.get(name), right.get(name)) {
                    (Some(wanted), Some(given)) => walk(wanted, given, &place, found),
                    (Some(wanted), None) => {
                        found.push((place, format!(" lacks {}", shown(wanted))));
                    }
                    (None, given) => {
                        let given = given.cloned().unwrap_or_default();
                        found.push((place, format!(" is extra: {}", shown(&given))));
                    }
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (wanted, given)) in left.iter().zip(right).enumerate() {
                walk(wanted, given, &format!("{at}/{index}"), found);
            }
        }
        _ if wanted == given => {}
        _ => {
            let text = format!("\n    wanted {}\n    given  {}", shown(wanted), shown(given));
            found.push((at.to_owned(), text));
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
