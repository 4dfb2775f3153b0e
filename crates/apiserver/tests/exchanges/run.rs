//! Sends the requests of a script and reads the answers.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use serde_json::{Map, Value, json};

use super::normal::Names;
use super::script::{Script, Step, Until, accepted, media_type};
use super::servers::{Answered, Connection, Target};

/// Headers that are part of an answer.
const HEADERS: [&str; 4] = ["content-type", "warning", "retry-after", "allow"];

/// How often a request is repeated that waits for something.
const TRIES: usize = 300;

/// How long an answer may take to its end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Values by the names they are kept under.
type Kept = BTreeMap<String, String>;

/// Sends every request of a script; what came back, one value a request, without what every
/// server draws for itself.
pub(crate) async fn play(script: &Script, target: &Target) -> Vec<Value> {
    let connection = target.connect().await;
    let mut kept = Kept::from([("ns".to_owned(), script.namespace())]);
    let space = json!({"metadata": {"name": script.namespace()}}).to_string();
    let request = Request::post("/api/v1/namespaces").header(CONTENT_TYPE, "application/json");
    let request = authorized(request, target, "admin").body(Bytes::from(space)).unwrap();
    let made = connection.send(request).await;
    assert_eq!(made.code, 201, "{}: the server is not a fresh one", script.name);
    let mut names = Names::default();
    let mut answers = Vec::new();
    for (number, step) in script.steps.iter().enumerate() {
        let answered = ask(&connection, target, step, &kept).await;
        let answer = readable(step, &answered);
        for (name, pointer) in &step.keep {
            let value = answer["body"].pointer(pointer).and_then(Value::as_str);
            kept.insert(name.clone(), value.unwrap_or("(absent)").to_owned());
        }
        answers.push(names.normal(number, &kept, answer));
    }
    answers
}

/// Sends one request, again and again if it waits for something.
async fn ask(connection: &Connection, target: &Target, step: &Step, kept: &Kept) -> Answered {
    for _ in 0..TRIES {
        let answered = connection.send(request(target, step, kept));
        let Ok(answered) = tokio::time::timeout(PATIENCE, answered).await else {
            panic!("no end of the answer to {}", step.ask)
        };
        if step.until.as_ref().is_none_or(|until| is_reached(until, &answered)) {
            return answered;
        }
        connection.wait().await;
    }
    panic!("what {} waits for does not come", step.ask)
}

fn is_reached(until: &Until, answered: &Answered) -> bool {
    let body: Value = serde_json::from_slice(&answered.bytes).unwrap_or_default();
    until.code.is_none_or(|code| code == answered.code)
        && until.has.iter().all(|(pointer, value)| body.pointer(pointer) == Some(value))
}

fn request(target: &Target, step: &Step, kept: &Kept) -> Request<Bytes> {
    let mut request = Request::builder().method(step.method()).uri(filled(step.path(), kept));
    if let Some(name) = &step.media_type {
        request = request.header(CONTENT_TYPE, media_type(name));
    } else if step.body.is_some() || step.text.is_some() || step.bytes.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some(name) = &step.accept {
        request = request.header(ACCEPT, accepted(name));
    }
    for (name, value) in &step.headers {
        request = request.header(name, filled(value, kept));
    }
    let body = match (&step.body, &step.text, step.bytes) {
        (Some(body), ..) => filled(&body.to_string(), kept),
        (_, Some(text), _) => filled(text, kept),
        (_, _, Some(count)) => format!("{{\"data\":\"{}\"}}", "x".repeat(count)),
        _ => String::new(),
    };
    let request = authorized(request, target, &filled(&step.user, kept));
    request.header(USER_AGENT, "exchange/1").body(body.into()).unwrap()
}

fn authorized(
    request: http::request::Builder,
    target: &Target,
    user: &str,
) -> http::request::Builder {
    match (user, target.token(user)) {
        ("nobody", _) => request,
        (_, Some(token)) => request.header(AUTHORIZATION, format!("Bearer {token}")),
        // A token itself, kept from an answer.
        (token, None) => request.header(AUTHORIZATION, format!("Bearer {token}")),
    }
}

/// A text with kept values in it. Longer names first, so that none hides in another.
fn filled(text: &str, kept: &Kept) -> String {
    let mut names: Vec<&String> = kept.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.iter().fold(text.to_owned(), |text, name| text.replace(&format!("${name}"), &kept[*name]))
}

/// An answer as JSON: its code, the headers that matter, and its body.
fn readable(step: &Step, answered: &Answered) -> Value {
    let mut answer = Map::new();
    answer.insert("ask".into(), step.ask.as_str().into());
    answer.insert("code".into(), answered.code.into());
    for name in HEADERS {
        let values = answered.headers.get_all(name).iter();
        let mut values: Vec<Value> = values.map(|value| value.to_str().unwrap().into()).collect();
        if values.len() == 1 {
            answer.insert(name.into(), values.remove(0));
        } else if !values.is_empty() {
            answer.insert(name.into(), values.into());
        }
    }
    answer.insert("body".into(), body(step, answered));
    answer.into()
}

fn body(step: &Step, answered: &Answered) -> Value {
    let text = String::from_utf8_lossy(&answered.bytes).into_owned();
    if step.is_watch() && answered.code == 200 {
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        return events.filter(|event| !is_idle(event)).collect();
    }
    serde_json::from_str(&text).unwrap_or_else(|_| text.trim_end().into())
}

/// A bookmark that comes when the server thinks so, and says nothing else.
fn is_idle(event: &Value) -> bool {
    let end = "/object/metadata/annotations/k8s.io~1initial-events-end";
    event["type"] == "BOOKMARK" && event.pointer(end).is_none()
}
