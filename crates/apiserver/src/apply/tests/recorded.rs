//! Sequences of writes with the answers that Kubernetes' own field manager (apimachinery 0.37,
//! structured-merge-diff 6.4) gave to each.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use smol_str::SmolStr;

use super::shapes::kinds;
use crate::apply::{Context, Error, Reset, apply, track_update};
use crate::form;
use crate::shape::Shape;

#[derive(Deserialize)]
struct Sequence {
    kind: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    op: String,
    manager: String,
    version: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    force: bool,
    input: Value,
    output: Option<Value>,
    /// The output as a built-in type has it.
    live: Option<Value>,
    message: Option<String>,
    #[serde(default)]
    causes: Vec<(String, String)>,
    error: Option<String>,
}

/// What a write answered, in a form that can be compared.
#[derive(Debug, PartialEq)]
enum Expected {
    Object(Value),
    Conflict { message: String, causes: Vec<(String, String)> },
    Refused,
}

/// On the shapes of `testdata/apply/shapes.json`, without Go types in the way: all that comes
/// out is compared.
#[test]
fn writes_of_custom_kinds_come_out_as_in_kubernetes() {
    let kinds = kinds();
    let text = include_str!("../../../testdata/apply/custom.jsonl");
    check(text, |step, position, live| {
        let version = format!("example.dev/{}", step.1.version);
        // The recorder reads the live object in the version of the request.
        let live = live.cloned().map(|mut live| {
            live["apiVersion"] = version.as_str().into();
            live
        });
        write(kinds.shape(step.0), &version, position, live.as_ref(), step.1)
    });
}

/// On Kubernetes' own types, whose structs are always complete. What an apply makes of them is
/// only known after decoding, which is not done here: ownership is compared, and conflicts.
#[test]
fn ownership_of_built_in_kinds_is_as_in_kubernetes() {
    let text = include_str!("../../../testdata/apply/builtin.jsonl");
    check(text, |step, position, live| {
        let shape = form::builtin(&step.1.version, step.0);
        let (found, expected) = write(shape, &step.1.version, position, live, step.1);
        let owners = |answer| match answer {
            Expected::Object(object) => {
                Expected::Object(object["metadata"]["managedFields"].clone())
            }
            other => other,
        };
        (owners(found), owners(expected))
    });
}

fn check(
    text: &str,
    replay: impl Fn((&str, &Step), usize, Option<&Value>) -> (Expected, Expected),
) {
    let (mut steps, mut different) = (0, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let sequence: Sequence = serde_json::from_str(line).unwrap();
        let mut live = None;
        for (position, step) in sequence.steps.iter().enumerate() {
            steps += 1;
            let (found, expected) = replay((&sequence.kind, step), position, live);
            if found != expected {
                let by = format!("{} by {:?}: {:?}", step.op, step.manager, step.error);
                different.push(format!(
                    "sequence {number} step {position}, {by}\nexpected {expected:?}\nfound    {found:?}"
                ));
            }
            live = step.live.as_ref().or(step.output.as_ref()).or(live);
        }
    }
    let shown: Vec<_> = different.iter().take(2).map(String::as_str).collect();
    assert!(different.is_empty(), "{} of {steps}\n{}", different.len(), shown.join("\n"));
}

/// The answer of a write and the recorded one.
fn write(
    shape: Shape<'_>,
    api_version: &str,
    position: usize,
    live: Option<&Value>,
    step: &Step,
) -> (Expected, Expected) {
    let reset = if step.subresource.is_empty() { "status" } else { "spec" };
    let context = Context {
        shape,
        api_version,
        served: &[SmolStr::new("example.dev/v1"), SmolStr::new("example.dev/v2")],
        manager: &step.manager,
        subresource: &step.subresource,
        now: Timestamp::new(1_577_836_800 + i64::try_from(position).unwrap(), 0).unwrap(),
        reset: &Reset::names(&[&[reset]]),
    };
    let found = if step.op == "update" {
        let mut new = step.input.clone();
        track_update(&context, live, &mut new);
        Expected::Object(with_uid(new))
    } else {
        answer(apply(&context, live, &step.input, step.force))
    };
    let expected = match (&step.output, &step.message) {
        (Some(object), _) => Expected::Object(object.clone()),
        (None, Some(message)) => {
            Expected::Conflict { message: message.clone(), causes: step.causes.clone() }
        }
        (None, None) => Expected::Refused,
    };
    (found, expected)
}

fn answer(result: Result<Value, Error>) -> Expected {
    match result {
        Ok(object) => Expected::Object(with_uid(object)),
        Err(Error::Conflicts(conflicts)) => {
            let mut causes: Vec<_> =
                conflicts.causes().map(|cause| (cause.message, cause.field)).collect();
            causes.sort_by(|(a, _), (b, _)| a.cmp(b));
            Expected::Conflict { message: conflicts.message(), causes }
        }
        Err(_) => Expected::Refused,
    }
}

/// The recorder gives every object one after its first write.
fn with_uid(mut object: Value) -> Value {
    object["metadata"]["uid"] = "u".into();
    object
}
