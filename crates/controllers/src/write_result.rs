//! The result of a write: what the response means for the step that the write belongs to.

use std::time::Duration;

use convoy_plan::Write;
use convoy_plan::step::Subresource;
use serde_json::Value;

use crate::response::Response;

/// The result of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    Done(Effect),
    /// The target is not as it was observed: plan again.
    Conflict,
    /// The same write may succeed later.
    Retry {
        at_least: Duration,
        message: String,
    },
    /// The write fails for as long as nothing else changes.
    Rejected {
        message: String,
    },
}

/// What is known of the target after a write succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The response has the object.
    Returned,
    Gone,
    /// The response does not have the object.
    Unknown,
}

/// How etcd refuses a request of more than 1.5 MiB.
const TOO_LARGE: &str = "request is too large";

impl WriteResult {
    /// What `response` to `write` means.
    ///
    /// | response             | create   | patch    | apply    | delete   | evict    |
    /// |----------------------|----------|----------|----------|----------|----------|
    /// | 200, 201, 202        | done     | done     | done     | done     | done     |
    /// | 404                  | rejected | conflict | as below | done     | done     |
    /// | 409                  | conflict | conflict | as below | conflict | conflict |
    /// | 401, 408, 429, 5xx   | retry    | retry    | retry    | retry    | retry    |
    /// | 400, 403, 413, 422 … | rejected | rejected | rejected | rejected | rejected |
    ///
    /// An apply that finds fields of other managers is rejected: planning again does not make
    /// them ours. One of an object that has changed or gone is a conflict like any other. One that
    /// creates the object and does not find its namespace is rejected, as a create is.
    ///
    /// Etcd refuses a request that is too large, which API servers report as an error of theirs
    /// (500). It does not become smaller by trying again.
    ///
    /// 401 is retried because credentials expire and are replaced while the process runs: the
    /// client re-reads a token file once a minute and runs an exec plugin again when its token
    /// expires, and the retries back off up to the same minute.
    pub fn of(write: &Write, response: &Response) -> Self {
        match response.code {
            200..300 => Self::Done(effect(write, response.code, &response.body)),
            404 => match write {
                // A create does not find its namespace.
                Write::Create { .. } => Self::Rejected { message: response.message() },
                Write::Apply { precondition, .. } if precondition.uid.is_none() => {
                    Self::Rejected { message: response.message() }
                }
                Write::Patch { .. } | Write::Apply { .. } => Self::Conflict,
                Write::Delete { .. } | Write::Evict { .. } => Self::Done(Effect::Gone),
            },
            409 if response.conflicting_managers().next().is_some() => {
                Self::Rejected { message: response.message() }
            }
            409 => Self::Conflict,
            500 if response.message().contains(TOO_LARGE) => {
                Self::Rejected { message: response.message() }
            }
            401 | 408 | 429 | 500.. => {
                let at_least = response.retry_after.unwrap_or_default();
                Self::Retry { at_least, message: retry_message(response) }
            }
            _ => Self::Rejected { message: response.message() },
        }
    }
}

fn retry_message(response: &Response) -> String {
    let message = response.message();
    if response.code == 401 {
        return format!(
            "the server rejected the credentials of this process (401): {message}; they are \
             re-read before a later attempt"
        );
    }
    message
}

/// A server that removes an object at once responds with a `Status` or with the last state of
/// the object; one that waits for finalizers or a grace period responds with the object marked
/// for deletion. Those of a Namespace stand in its spec as well.
fn effect(write: &Write, code: u16, body: &Value) -> Effect {
    let is_object = body.pointer("/metadata/name").is_some();
    match write {
        // The response to a patch of the scale is the scale.
        Write::Patch { subresource: Some(Subresource::Scale), .. } => Effect::Unknown,
        Write::Create { .. } | Write::Patch { .. } | Write::Apply { .. } if is_object => {
            Effect::Returned
        }
        Write::Delete { .. } if is_object => {
            let metadata = &body["metadata"];
            let is_held = |part: &Value| {
                part["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
            };
            let lingers = is_held(metadata)
                || body["kind"] == "Namespace" && is_held(&body["spec"])
                || metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
            if !metadata["deletionTimestamp"].is_null() && lingers {
                Effect::Returned
            } else {
                Effect::Gone
            }
        }
        // 202 only says that the deletion has begun.
        Write::Delete { .. } if code == 200 => Effect::Gone,
        _ => Effect::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use convoy_plan::step::{Precondition, Propagation};
    use serde_json::json;

    use super::*;

    fn response(code: u16, body: Value) -> Response {
        Response { code, retry_after: None, body }
    }

    fn delete() -> Write {
        let precondition = Precondition::default();
        let propagation = Propagation::Background;
        Write::Delete { grace_secs: None, precondition, propagation }
    }

    fn patch() -> Write {
        let precondition = Precondition::default();
        Write::Patch { patch: json!({}), subresource: None, precondition }
    }

    fn create() -> Write {
        Write::Create { object: json!({}) }
    }

    #[test]
    fn every_response_has_its_meaning() {
        let message = json!({"kind": "Status", "message": "no"});
        let rejected = || WriteResult::Rejected { message: "no".to_owned() };
        let retry = || WriteResult::Retry { at_least: Duration::ZERO, message: "no".to_owned() };
        let cases = [
            (create(), 404, rejected()),
            (create(), 409, WriteResult::Conflict),
            (create(), 422, rejected()),
            (create(), 403, rejected()),
            (patch(), 404, WriteResult::Conflict),
            (patch(), 409, WriteResult::Conflict),
            (patch(), 500, retry()),
            (patch(), 503, retry()),
            (delete(), 404, WriteResult::Done(Effect::Gone)),
            (delete(), 409, WriteResult::Conflict),
            (delete(), 429, retry()),
        ];
        for (write, code, expected) in cases {
            assert_eq!(
                WriteResult::of(&write, &response(code, message.clone())),
                expected,
                "{write:?} {code}"
            );
        }
    }

    #[test]
    fn an_apply_tells_other_managers_from_a_newer_version() {
        let apply = |uid: Option<&str>| {
            let precondition = Precondition { uid: uid.map(str::to_owned), resource_version: None };
            Write::Apply { object: json!({}), force: false, manager: None, precondition }
        };
        let message = "Apply failed with 1 conflict: conflict with \"kubectl\": .data.a";
        let cause = json!({"reason": "FieldManagerConflict", "field": ".data.a",
            "message": "conflict with \"kubectl\""});
        let managers = json!({"message": message, "details": {"causes": [cause]}});
        let rejected = WriteResult::Rejected { message: message.to_owned() };
        let of = |uid: Option<&str>, code: u16, body: &Value| {
            WriteResult::of(&apply(uid), &response(code, body.clone()))
        };
        assert_eq!(of(Some("u"), 409, &managers), rejected);
        let stale = json!({"message": "the object has been modified"});
        assert_eq!(of(Some("u"), 409, &stale), WriteResult::Conflict);
        assert_eq!(of(Some("u"), 404, &stale), WriteResult::Conflict);
        assert!(matches!(of(None, 404, &stale), WriteResult::Rejected { .. }));
    }

    #[test]
    fn a_request_that_is_too_large_is_not_tried_again() {
        let text = json!({"message": "etcdserver: request is too large"});
        for code in [413, 500] {
            let result = WriteResult::of(&create(), &response(code, text.clone()));
            assert!(matches!(result, WriteResult::Rejected { .. }), "{code}");
        }
    }

    #[test]
    fn retry_after_is_respected() {
        let retry_after = Some(Duration::from_secs(10));
        let response = Response { code: 429, retry_after, body: Value::Null };
        let WriteResult::Retry { at_least, message } = WriteResult::of(&patch(), &response) else {
            panic!()
        };
        assert_eq!((at_least.as_secs(), message.as_str()), (10, "the server answered 429"));
    }

    #[test]
    fn the_end_of_a_deletion_is_distinguished_from_its_beginning() {
        let object = |metadata: Value| json!({"kind": "Pod", "metadata": metadata});
        let going = object(json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 30}));
        let gone = object(json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 0}));
        let namespace = |finalizers: Value| {
            json!({"kind": "Namespace", "spec": {"finalizers": finalizers},
                "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
        };
        let status = json!({"kind": "Status", "metadata": {}, "status": "Success"});
        let done = |body: &Value| WriteResult::of(&delete(), &response(200, body.clone()));
        assert_eq!(done(&going), WriteResult::Done(Effect::Returned));
        assert_eq!(done(&gone), WriteResult::Done(Effect::Gone));
        assert_eq!(done(&namespace(json!(["kubernetes"]))), WriteResult::Done(Effect::Returned));
        assert_eq!(done(&namespace(json!([]))), WriteResult::Done(Effect::Gone));
        assert_eq!(done(&status), WriteResult::Done(Effect::Gone));
        let accepted = WriteResult::of(&delete(), &response(202, status));
        assert_eq!(accepted, WriteResult::Done(Effect::Unknown));
    }

    #[test]
    fn a_created_object_is_returned() {
        let object = json!({"kind": "Pod", "metadata": {"name": "a"}});
        let made = WriteResult::of(&create(), &response(201, object));
        assert_eq!(made, WriteResult::Done(Effect::Returned));
        let unread = WriteResult::of(&create(), &response(201, Value::Null));
        assert_eq!(unread, WriteResult::Done(Effect::Unknown));
    }

    #[test]
    fn rejected_credentials_are_retried_and_named() {
        for write in [create(), patch(), delete()] {
            let result =
                WriteResult::of(&write, &response(401, json!({"message": "Unauthorized"})));
            let WriteResult::Retry { message, .. } = result else { panic!("{result:?}") };
            assert!(
                message.contains("credentials of this process (401): Unauthorized"),
                "{message}"
            );
        }
    }
}
