//! One line of the audit log: `audit.k8s.io/v1` Event.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Request;
use super::policy::{Level, Stage};
use crate::caller::Caller;
use crate::protobuf;
use crate::request_info::{RequestInfo, Target};
use crate::surroundings::micros;

/// What is known of a request, in the order of its fields.
#[derive(Clone, Debug)]
pub(super) struct Event {
    level: Level,
    id: String,
    uri: String,
    verb: String,
    user: Value,
    pub(super) impersonated: Option<Value>,
    address: String,
    user_agent: String,
    target: Option<Target>,
    received: Timestamp,
    annotations: BTreeMap<String, String>,
    pub(super) code: u16,
    /// Parsed only when the line is written, which is not on the request's time.
    pub(super) request_object: Option<Bytes>,
    pub(super) response_object: Option<Bytes>,
    pub(super) omit_managed_fields: bool,
}

/// An event at one of its stages.
#[derive(Debug)]
pub(super) struct Line {
    event: Event,
    stage: Stage,
    time: Timestamp,
}

/// A body that may be an object.
pub(super) fn object(body: &Bytes) -> Option<Bytes> {
    (!body.is_empty()).then(|| body.clone())
}

impl Event {
    pub(super) fn new(
        level: Level,
        request: Request<'_>,
        caller: &Caller,
        info: &RequestInfo,
    ) -> Self {
        Self {
            level,
            id: request.id.to_owned(),
            uri: request.uri.to_owned(),
            verb: info.verb.to_string(),
            user: caller.user_info(),
            impersonated: None,
            address: request.address.to_owned(),
            user_agent: request.user_agent.to_owned(),
            target: info.target.clone(),
            received: request.received,
            annotations: BTreeMap::new(),
            code: 0,
            request_object: None,
            response_object: None,
            omit_managed_fields: false,
        }
    }

    pub(super) fn annotate(&mut self, key: &str, value: String) {
        self.annotations.insert(key.to_owned(), value);
    }

    pub(super) fn at(&self, stage: Stage, time: Timestamp) -> Line {
        Line { event: self.clone(), stage, time }
    }
}

impl Line {
    pub(super) fn text(&self) -> String {
        let Self { event, stage, time } = self;
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
        put("kind", json!("Event"));
        put("apiVersion", json!("audit.k8s.io/v1"));
        put("level", json!(format!("{:?}", event.level)));
        put("auditID", json!(event.id));
        put("stage", json!(format!("{stage:?}")));
        put("requestURI", json!(event.uri));
        put("verb", json!(event.verb));
        put("user", event.user.clone());
        if let Some(user) = &event.impersonated {
            put("impersonatedUser", user.clone());
        }
        if !event.address.is_empty() {
            put("sourceIPs", json!([event.address]));
        }
        if !event.user_agent.is_empty() {
            put("userAgent", json!(event.user_agent));
        }
        let response = event.response_object.as_ref().and_then(|body| event.read(body));
        if let Some(target) = &event.target {
            put("objectRef", reference(target, response.as_ref()));
        }
        if event.code != 0 {
            put("responseStatus", status(event.code, response.as_ref()));
        }
        if let Some(object) = event.request_object.as_ref().and_then(|body| event.read(body)) {
            put("requestObject", object);
        }
        if let Some(object) = response {
            put("responseObject", object);
        }
        put("requestReceivedTimestamp", json!(micros(event.received)));
        put("stageTimestamp", json!(micros(*time)));
        if !event.annotations.is_empty() {
            put("annotations", json!(event.annotations));
        }
        Value::Object(map).to_string()
    }
}

impl Event {
    /// The object in a body, in whatever encoding it came.
    fn read(&self, body: &Bytes) -> Option<Value> {
        let mut object = match serde_json::from_slice(body) {
            Ok(object) => object,
            Err(_) => protobuf::decode(body).ok()?.value,
        };
        if self.omit_managed_fields
            && let Some(Value::Object(metadata)) = object.get_mut("metadata")
        {
            metadata.shift_remove("managedFields");
        }
        Some(object)
    }
}

fn reference(target: &Target, response: Option<&Value>) -> Value {
    let mut map = Map::new();
    let told = |field: &str| {
        let value = response.and_then(|object| object.pointer(&format!("/metadata/{field}")));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let name = if target.name.is_empty() { told("name") } else { target.name.to_string() };
    let parts = [
        ("resource", target.resource.to_string()),
        ("namespace", target.namespace.to_string()),
        ("name", name),
        ("uid", told("uid")),
        ("apiGroup", target.group.to_string()),
        ("apiVersion", target.version.to_string()),
        ("resourceVersion", told("resourceVersion")),
        ("subresource", target.subresource.to_string()),
    ];
    for (key, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
        map.insert(key.to_owned(), Value::String(value));
    }
    Value::Object(map)
}

/// The code, and what a refusal says besides.
fn status(code: u16, response: Option<&Value>) -> Value {
    let mut status = Map::new();
    status.insert("metadata".to_owned(), json!({}));
    let refusal = response.filter(|object| object["kind"] == "Status");
    for field in ["status", "message", "reason", "details"] {
        let value = refusal.and_then(|refusal| refusal.get(field));
        if let Some(value) = value {
            status.insert(field.to_owned(), value.clone());
        }
    }
    status.insert("code".to_owned(), json!(code));
    Value::Object(status)
}
