//! What the answer to a write means: it is done, the world is another than was thought, it may
//! work later, or it never will as it stands.

use std::time::Duration;

use convoy_plan::Write;
use convoy_plan::step::Subresource;
use serde_json::Value;

/// What a server answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub code: u16,
    pub retry_after: Option<Duration>,
    /// An object or a `Status`; null if it could not be read.
    pub body: Value,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Effect),
    /// What was written to is not what was observed: plan afresh.
    Conflict,
    /// The server cannot at the moment.
    Later {
        at_least: Duration,
        message: String,
    },
    /// The server will not, as long as nothing else changes.
    Refused {
        message: String,
    },
}

/// What is known of the target once a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The answer shows it.
    Shown,
    Gone,
    /// Nothing: the answer does not show the object.
    Unknown,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    fn text(&self, field: &str) -> &str {
        self.body.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// What a person is told.
    pub fn message(&self) -> String {
        match self.text("message") {
            "" => format!("the server answered {}", self.code),
            message => message.to_owned(),
        }
    }
}

/// What `answer` to `write` means.
///
/// | answer               | create   | patch    | delete   | evict    |
/// |----------------------|----------|----------|----------|----------|
/// | 200, 201, 202        | done     | done     | done     | done     |
/// | 404                  | refused  | conflict | done     | done     |
/// | 409                  | conflict | conflict | conflict | conflict |
/// | 429, 5xx             | later    | later    | later    | later    |
/// | 400, 401, 403, 422 … | refused  | refused  | refused  | refused  |
pub fn outcome(write: &Write, answer: &Answer) -> Outcome {
    match answer.code {
        200..300 => Outcome::Done(effect(write, answer.code, &answer.body)),
        404 => match write {
            // The namespace, not the object, is what a create does not find.
            Write::Create { .. } => Outcome::Refused { message: answer.message() },
            Write::Patch { .. } => Outcome::Conflict,
            Write::Delete { .. } | Write::Evict { .. } => Outcome::Done(Effect::Gone),
        },
        409 => Outcome::Conflict,
        // Credentials are renewed below us; the next attempt may have them.
        401 | 408 | 429 | 500.. => {
            let at_least = answer.retry_after.unwrap_or_default();
            Outcome::Later { at_least, message: answer.message() }
        }
        _ => Outcome::Refused { message: answer.message() },
    }
}

/// A server that takes an object away at once answers with a `Status`, or with the object as
/// it was last; one that lets it end in its own time answers with the object marked as going.
fn effect(write: &Write, code: u16, body: &Value) -> Effect {
    let is_object = body.pointer("/metadata/name").is_some();
    match write {
        // The answer to a patch of the scale is the scale.
        Write::Patch { subresource: Some(Subresource::Scale), .. } => Effect::Unknown,
        Write::Create { .. } | Write::Patch { .. } if is_object => Effect::Shown,
        Write::Delete { .. } if is_object => {
            let metadata = &body["metadata"];
            let lingers = metadata["finalizers"].as_array().is_some_and(|list| !list.is_empty())
                || metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
            if !metadata["deletionTimestamp"].is_null() && lingers {
                Effect::Shown
            } else {
                Effect::Gone
            }
        }
        // Accepted is not gone: finalizers, or orphans to be freed first.
        Write::Delete { .. } if code == 200 => Effect::Gone,
        _ => Effect::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use convoy_plan::step::{Precondition, Propagation};
    use serde_json::json;

    use super::*;

    fn answer(code: u16, body: Value) -> Answer {
        Answer { code, retry_after: None, body }
    }

    fn delete() -> Write {
        let precondition = Precondition::default();
        Write::Delete { precondition, propagation: Propagation::Background }
    }

    fn patch() -> Write {
        let precondition = Precondition::default();
        Write::Patch { patch: json!({}), subresource: None, precondition }
    }

    fn create() -> Write {
        Write::Create { object: json!({}) }
    }

    #[test]
    fn every_answer_has_its_meaning() {
        let message = json!({"kind": "Status", "message": "no"});
        let refused = || Outcome::Refused { message: "no".to_owned() };
        let later = || Outcome::Later { at_least: Duration::ZERO, message: "no".to_owned() };
        let cases = [
            (create(), 404, refused()),
            (create(), 409, Outcome::Conflict),
            (create(), 422, refused()),
            (create(), 403, refused()),
            (patch(), 404, Outcome::Conflict),
            (patch(), 409, Outcome::Conflict),
            (patch(), 500, later()),
            (patch(), 503, later()),
            (delete(), 404, Outcome::Done(Effect::Gone)),
            (delete(), 409, Outcome::Conflict),
            (delete(), 429, later()),
        ];
        for (write, code, expected) in cases {
            assert_eq!(
                outcome(&write, &answer(code, message.clone())),
                expected,
                "{write:?} {code}"
            );
        }
    }

    #[test]
    fn a_server_says_when_to_come_back() {
        let retry_after = Some(Duration::from_secs(10));
        let answer = Answer { code: 429, retry_after, body: Value::Null };
        let Outcome::Later { at_least, message } = outcome(&patch(), &answer) else { panic!() };
        assert_eq!((at_least.as_secs(), message.as_str()), (10, "the server answered 429"));
    }

    #[test]
    fn deletion_is_told_from_its_beginning() {
        let object = |metadata: Value| json!({"kind": "Pod", "metadata": metadata});
        let going = object(json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 30}));
        let gone = object(json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0}));
        let status = json!({"kind": "Status", "metadata": {}, "status": "Success"});
        let done = |body: &Value| outcome(&delete(), &answer(200, body.clone()));
        assert_eq!(done(&going), Outcome::Done(Effect::Shown));
        assert_eq!(done(&gone), Outcome::Done(Effect::Gone));
        assert_eq!(done(&status), Outcome::Done(Effect::Gone));
        let accepted = outcome(&delete(), &answer(202, status));
        assert_eq!(accepted, Outcome::Done(Effect::Unknown));
    }

    #[test]
    fn what_was_written_is_shown() {
        let object = json!({"kind": "Pod", "metadata": {"name": "a"}});
        let made = outcome(&create(), &answer(201, object));
        assert_eq!(made, Outcome::Done(Effect::Shown));
        let unread = outcome(&create(), &answer(201, Value::Null));
        assert_eq!(unread, Outcome::Done(Effect::Unknown));
    }
}
