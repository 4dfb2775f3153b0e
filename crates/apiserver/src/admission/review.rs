//! `AdmissionReview` objects: building the request and reading the response.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Operation;
use crate::registry::split_api_version;
use crate::resource_request::ResourceRequest;
use crate::status::{ApiResult, Status};
use crate::surroundings::new_uid;

/// The request of a review: all that a webhook, or a condition, may know.
pub(super) fn admission_request(
    request: &ResourceRequest,
    operation: Operation,
    object: Option<&Value>,
    old: Option<&Value>,
    dry_run: bool,
) -> Value {
    let resource = &request.resource;
    let (group, version) = (&resource.group, &resource.version);
    let kind = json!({"group": group, "version": version, "kind": resource.kind});
    let named = json!({"group": group, "version": version, "resource": resource.plural});
    let caller = &request.caller;
    let mut admission_request = json!({
        "uid": new_uid(&*request.server.surroundings),
        "kind": kind, "resource": named, "requestKind": kind, "requestResource": named,
        "name": name(request, object), "operation": operation.word(),
        "userInfo": {"username": caller.name, "groups": caller.groups},
        "object": object, "oldObject": old, "dryRun": dry_run,
        "options": {"kind": options_kind(operation), "apiVersion": "meta.k8s.io/v1"},
    });
    if !request.target.subresource.is_empty() {
        admission_request["subResource"] = json!(request.target.subresource);
        admission_request["requestSubResource"] = json!(request.target.subresource);
    }
    if !request.namespace().is_empty() {
        admission_request["namespace"] = json!(request.namespace());
    }
    if !caller.uid.is_empty() {
        admission_request["userInfo"]["uid"] = json!(caller.uid);
    }
    if !caller.extra.is_empty() {
        admission_request["userInfo"]["extra"] = json!(caller.extra);
    }
    admission_request
}

fn options_kind(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    }
}

/// The name that a request is about: the path's, or that of what is to be made.
pub(super) fn name<'r>(request: &'r ResourceRequest, object: Option<&'r Value>) -> &'r str {
    match (request.target.name.as_str(), object) {
        ("", Some(object)) => object["metadata"]["name"].as_str().unwrap_or_default(),
        (name, _) => name,
    }
}

pub(super) fn review(admission_request: &Value) -> Value {
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": admission_request})
}

/// What a webhook said.
#[derive(Debug)]
pub(super) struct Verdict {
    pub patch: Option<json_patch::Patch>,
    pub warnings: Vec<String>,
    /// For the audit log, by key.
    pub notes: Vec<(String, String)>,
}

/// Reads a response. The outer error: it is malformed; the inner one: it denies the request.
pub(super) fn verdict(
    name: &str,
    admission_request: &Value,
    answer: &Value,
) -> Result<ApiResult<Verdict>, String> {
    let (group, version) = split_api_version(answer["apiVersion"].as_str().unwrap_or_default());
    if answer["kind"] != "AdmissionReview" || group != "admission.k8s.io" || version != "v1" {
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}, Kind={}",
            answer["apiVersion"].as_str().unwrap_or_default(),
            answer["kind"].as_str().unwrap_or_default()
        ));
    }
    let response = &answer["response"];
    if response["uid"] != admission_request["uid"] {
        return Err(format!(
            "expected response.uid={}, got {}",
            admission_request["uid"], response["uid"]
        ));
    }
    if response["allowed"] != true {
        return Ok(Err(denial(name, &response["status"])));
    }
    let patch = match response["patch"].as_str() {
        None | Some("") => None,
        Some(_) if response["patchType"] != "JSONPatch" => {
            return Err(format!("invalid response.patchType: {}", response["patchType"]));
        }
        Some(text) => {
            let bytes =
                STANDARD.decode(text).map_err(|error| format!("response.patch: {error}"))?;
            Some(
                serde_json::from_slice(&bytes)
                    .map_err(|error| format!("response.patch: {error}"))?,
            )
        }
    };
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
    let notes = response["auditAnnotations"].as_object().into_iter().flatten();
    let notes = notes.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    Ok(Ok(Verdict { patch, warnings, notes: notes.collect() }))
}

fn denial(name: &str, status: &Value) -> Box<Status> {
    let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
    let message = match (text("message"), text("reason")) {
        (Some(message), _) => format!("admission webhook {name:?} denied the request: {message}"),
        (None, Some(reason)) => format!("admission webhook {name:?} denied the request: {reason}"),
        (None, None) => {
            format!("admission webhook {name:?} denied the request without explanation")
        }
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..600).contains(code)).unwrap_or(403);
    Status::denied(code, text("reason").unwrap_or_default(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(response: Value) -> Result<ApiResult<Verdict>, String> {
        let answer = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
        verdict("a.b.c", &json!({"uid": "u"}), &answer)
    }

    #[test]
    fn answers_are_read_or_refused() {
        assert!(answered(json!({"uid": "u", "allowed": true})).unwrap().unwrap().patch.is_none());
        let patch = STANDARD.encode(r#"[{"op":"add","path":"/a","value":1}]"#);
        let verdict = answered(
            json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch", "warnings": ["w"]}),
        );
        let verdict = verdict.unwrap().unwrap();
        assert_eq!((verdict.patch.unwrap().len(), verdict.warnings), (1, vec!["w".to_owned()]));
        assert!(answered(json!({"uid": "other", "allowed": true})).is_err());
        assert!(answered(json!({"uid": "u", "allowed": true, "patch": "x"})).is_err());
    }

    #[test]
    fn a_no_says_who_and_why() {
        let refused = |status: Value| {
            answered(json!({"uid": "u", "allowed": false, "status": status})).unwrap().unwrap_err()
        };
        let status = refused(json!({"message": "too big", "code": 422, "reason": "Invalid"}));
        assert_eq!(
            (status.code, status.message.as_str()),
            (422, "admission webhook \"a.b.c\" denied the request: too big")
        );
        let status = refused(Value::Null);
        assert_eq!(
            (status.code, status.message.as_str()),
            (403, "admission webhook \"a.b.c\" denied the request without explanation")
        );
    }
}
