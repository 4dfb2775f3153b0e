//! Errors as clients see them: a `Status` with code, reason, message and details, in
//! Kubernetes' words where clients or people compare them.

use std::sync::Arc;

use convoy_api::schema::FieldError;
use serde_json::{Map, Value, json};

/// What a refusal calls the kind of an object by.
pub trait Named {
    /// Empty for the core group.
    fn group(&self) -> &str;
    fn plural(&self) -> &str;
    fn kind(&self) -> &str;

    /// `deployments.apps`; the plural alone in the core group.
    fn qualified_plural(&self) -> String {
        match self.group() {
            "" => self.plural().to_owned(),
            group => format!("{}.{group}", self.plural()),
        }
    }

    /// `Deployment.apps`: how messages of refusal begin.
    fn qualified_kind(&self) -> String {
        match self.group() {
            "" => self.kind().to_owned(),
            group => format!("{}.{group}", self.kind()),
        }
    }
}

impl<T: Named> Named for Arc<T> {
    fn group(&self) -> &str {
        (**self).group()
    }

    fn plural(&self) -> &str {
        (**self).plural()
    }

    fn kind(&self) -> &str {
        (**self).kind()
    }
}

/// A refusal. Boxed where it travels in a `Result`, since the good path is the hot one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Details,
    /// A place to go on listing from, where the one that was given is too old.
    pub continue_from: Option<String>,
    /// Details stand in the answer even if there are none, as Kubernetes does it where no object
    /// is at fault.
    shows_details: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// The resource, or the kind where the object itself is at fault.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// The result of handling a request: a value, or the `Status` that the client receives.
pub type ApiResult<T> = Result<T, Box<Status>>;

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code,
            reason,
            message: message.into(),
            details: Details::default(),
            continue_from: None,
            shows_details: false,
        })
    }

    /// A refusal without an object to name.
    fn general(code: u16, reason: &'static str, message: &str) -> Box<Self> {
        Box::new(Self { shows_details: true, ..*Self::new(code, reason, message) })
    }

    /// A failure for which Kubernetes knows no reason, only words.
    pub fn failed(message: impl Into<String>) -> Box<Self> {
        Self::new(500, "", message)
    }

    fn of(mut self: Box<Self>, resource: &dyn Named, name: &str) -> Box<Self> {
        name.clone_into(&mut self.details.name);
        resource.group().clone_into(&mut self.details.group);
        resource.plural().clone_into(&mut self.details.kind);
        self
    }

    #[must_use]
    pub fn with_cause(mut self: Box<Self>, reason: &str, message: &str, field: &str) -> Box<Self> {
        let cause =
            Cause { reason: reason.into(), message: message.into(), field: field.to_owned() };
        self.details.causes.push(cause);
        self
    }

    #[must_use]
    pub fn retry_after(mut self: Box<Self>, seconds: u32) -> Box<Self> {
        self.details.retry_after_seconds = seconds;
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Box<Self> {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Box<Self> {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// Refused by the rules of access or by admission: `pods "x" is forbidden: why`.
    pub fn forbidden(resource: &dyn Named, name: &str, why: &str) -> Box<Self> {
        Self::forbidden_thing(resource.group(), resource.plural(), name, why)
    }

    /// The same of a resource that may not exist.
    pub fn forbidden_thing(group: &str, plural: &str, name: &str, why: &str) -> Box<Self> {
        let dot = if group.is_empty() { "" } else { "." };
        let what = if name.is_empty() {
            format!("{plural}{dot}{group}")
        } else {
            format!("{plural}{dot}{group} {name:?}")
        };
        let mut status = Self::new(403, "Forbidden", format!("{what} is forbidden: {why}"));
        name.clone_into(&mut status.details.name);
        group.clone_into(&mut status.details.group);
        plural.clone_into(&mut status.details.kind);
        status
    }

    /// The same refusal for another reason, as policies give them.
    #[must_use]
    pub fn because(mut self: Box<Self>, reason: &'static str) -> Box<Self> {
        self.code = match reason {
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            "Invalid" => 422,
            _ => 403,
        };
        self.reason = reason;
        self
    }

    /// Refused by a webhook, with the code that it chose.
    pub fn denied(code: u16, reason: &str, message: String) -> Box<Self> {
        let reasons = [
            (400, "BadRequest"),
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (404, "NotFound"),
            (409, "Conflict"),
            (422, "Invalid"),
            (429, "TooManyRequests"),
            (503, "ServiceUnavailable"),
        ];
        let by_code = |(known, _): &&(u16, &str)| *known == code;
        let by_name = |(_, name): &&(u16, &str)| *name == reason;
        let found = reasons.iter().find(by_name).or_else(|| reasons.iter().find(by_code));
        Self::new(code, found.map_or("Forbidden", |(_, name)| name), message)
    }

    pub fn forbidden_path(why: &str) -> Box<Self> {
        Self::general(403, "Forbidden", &format!("forbidden: {why}"))
    }

    pub fn not_found(resource: &dyn Named, name: &str) -> Box<Self> {
        let message = format!("{} {name:?} not found", resource.qualified_plural());
        Self::new(404, "NotFound", message).of(resource, name)
    }

    pub fn no_such_route() -> Box<Self> {
        Self::general(404, "NotFound", "the server could not find the requested resource")
    }

    pub fn method_not_allowed() -> Box<Self> {
        let message = "the server does not allow this method on the requested resource";
        Self::general(405, "MethodNotAllowed", message)
    }

    pub fn not_provided(message: impl Into<String>) -> Box<Self> {
        Self::new(405, "MethodNotAllowed", message)
    }

    pub fn not_acceptable() -> Box<Self> {
        let message = "only the following media types are accepted: application/json, \
                       application/yaml";
        Self::new(406, "NotAcceptable", message)
    }

    pub fn already_exists(resource: &dyn Named, name: &str) -> Box<Self> {
        let message = format!("{} {name:?} already exists", resource.qualified_plural());
        Self::new(409, "AlreadyExists", message).of(resource, name)
    }

    /// A create of a name whose object is on its way out.
    pub fn still_being_deleted(resource: &dyn Named, name: &str) -> Box<Self> {
        let mut status = Self::already_exists(resource, name);
        status.message = format!("object is being deleted: {}", status.message);
        status
    }

    pub fn conflict(resource: &dyn Named, name: &str, why: &str) -> Box<Self> {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            resource.qualified_plural()
        );
        Self::new(409, "Conflict", message).of(resource, name)
    }

    pub fn modified_meanwhile(resource: &dyn Named, name: &str) -> Box<Self> {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(resource, name, why)
    }

    /// The conflicts of a server-side apply.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Box<Self> {
        let mut status = Self::new(409, "Conflict", message);
        status.details.causes = causes;
        status
    }

    pub fn expired(message: impl Into<String>) -> Box<Self> {
        Self::new(410, "Expired", message)
    }

    pub fn too_large(limit: usize) -> Box<Self> {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// An object that would become too large by what the server adds to it.
    pub fn grown_too_large(limit: usize, wanted: usize) -> Box<Self> {
        let what = "Request entity too large: limit is";
        let message = format!("{what} {limit}; the object would have at least {wanted} bytes");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub fn unsupported_media(accepted: &[&str]) -> Box<Self> {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// A patch of a kind that the resource does not take.
    pub fn unsupported_patch() -> Box<Self> {
        Self::general(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }

    /// The object breaks rules of its kind.
    pub fn invalid(resource: &dyn Named, name: &str, errors: &[FieldError]) -> Box<Self> {
        let mut status = Self::invalid_thing(&resource.qualified_kind(), name, errors);
        resource.group().clone_into(&mut status.details.group);
        resource.kind().clone_into(&mut status.details.kind);
        status
    }

    /// Something that is no stored object breaks rules: options of a request.
    pub fn invalid_thing(kind: &str, name: &str, errors: &[FieldError]) -> Box<Self> {
        let mut texts: Vec<String> = Vec::new();
        for error in errors.iter().map(ToString::to_string) {
            if !texts.contains(&error) {
                texts.push(error);
            }
        }
        let list = match &texts[..] {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let mut status = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {list}"));
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        kind.clone_into(&mut status.details.kind);
        group.clone_into(&mut status.details.group);
        name.clone_into(&mut status.details.name);
        status.details.causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.reason.code().to_owned(),
                message: error.message.clone(),
                field: error.reported_field().to_owned(),
            })
            .collect();
        status
    }

    /// A patch that could be read but not carried out.
    pub fn patch_failed() -> Box<Self> {
        let message = "the server rejected our request due to an error in our request";
        Self::general(422, "Invalid", message)
    }

    /// A patch that would go beyond a limit.
    pub fn unprocessable(message: &str) -> Box<Self> {
        Self::general(422, "Invalid", message)
    }

    pub fn too_many_requests(message: impl Into<String>, seconds: u32) -> Box<Self> {
        Self::new(429, "TooManyRequests", message).retry_after(seconds)
    }

    pub fn internal(why: impl std::fmt::Display) -> Box<Self> {
        let mut status = Self::new(500, "InternalError", format!("Internal error occurred: {why}"));
        let message = why.to_string();
        status.details.causes.push(Cause { message, ..Cause::default() });
        status
    }

    pub fn unavailable(message: impl Into<String>) -> Box<Self> {
        Self::new(503, "ServiceUnavailable", message)
    }

    pub fn timeout(message: impl Into<String>) -> Box<Self> {
        Self::new(504, "Timeout", message)
    }

    /// A revision that does not exist yet, and did not come in time.
    pub fn revision_ahead(wanted: u64, current: u64) -> Box<Self> {
        let what = "Too large resource version";
        Self::timeout(format!("Timeout: {what}: {wanted}, current: {current}"))
            .with_cause("ResourceVersionTooLarge", what, "")
            .retry_after(1)
    }

    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(place) = &self.continue_from {
            metadata.insert("continue".into(), json!(place));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata,
            "status": "Failure", "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        let details = self.details.to_map();
        if !details.is_empty() || self.shows_details {
            status["details"] = Value::Object(details);
        }
        status["code"] = json!(self.code);
        status
    }
}

impl Details {
    fn to_map(&self) -> Map<String, Value> {
        let mut map = Map::new();
        let texts = [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            map.insert(key.into(), json!(text));
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_value).collect();
            map.insert("causes".into(), Value::Array(causes));
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".into(), json!(self.retry_after_seconds));
        }
        map
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let parts = [("reason", &self.reason), ("message", &self.message), ("field", &self.field)];
        let present = parts.into_iter().filter(|(_, text)| !text.is_empty());
        Value::Object(present.map(|(key, text)| (key.into(), json!(text))).collect())
    }
}

/// A deletion that is done, or a sub-resource that has nothing else to show.
pub fn success(resource: &dyn Named, name: &str, uid: &str) -> Value {
    let details = Details {
        name: name.to_owned(),
        group: resource.group().to_owned(),
        kind: resource.plural().to_owned(),
        uid: uid.to_owned(),
        ..Details::default()
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details.to_map(),
    })
}

/// The whole story of an error, where the outermost alone says little.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use convoy_api::schema::Reason;

    use super::*;
    use crate::registry::builtin;

    #[test]
    fn refusals_read_as_kubernetes_words_them() {
        let deployments = builtin().get("apps", "v1", "deployments").unwrap();
        let status = Status::not_found(deployments, "d").to_value();
        assert_eq!(status["message"], "deployments.apps \"d\" not found");
        assert_eq!(status["details"], json!({"name": "d", "group": "apps", "kind": "deployments"}));

        let errors = [
            FieldError::plain(Reason::Required, "spec.selector", ""),
            FieldError::about(Reason::Invalid, "spec.replicas", &json!(-1), "must be positive"),
        ];
        let status = Status::invalid(deployments, "d", &errors).to_value();
        assert_eq!(
            status["message"],
            "Deployment.apps \"d\" is invalid: [spec.selector: Required value, \
             spec.replicas: Invalid value: -1: must be positive]"
        );
        assert_eq!(status["details"]["kind"], "Deployment");
        assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueRequired");
        assert_eq!(status["code"], 422);
    }
}
