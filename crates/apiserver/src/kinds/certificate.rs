//! Requests for certificates: who asks is never what the request says, and only `approval`
//! decides about it.

mod admission;
mod columns;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use convoy_api::text::Name;
use serde_json::{Value, json};

use super::at::{At, Errors};
use super::kind::{Change, Kind};
use crate::column::Column;
use crate::metadata::path_segment;
use crate::resource_request::ResourceRequest;
use crate::status::ApiResult;
use crate::surroundings::seconds;

pub(super) use admission::refuse;

const DECISIONS: [&str; 2] = ["Approved", "Denied"];

pub(super) fn prepare_create(request: &ResourceRequest, object: &mut Value) {
    let caller = &request.caller;
    let spec = &mut object["spec"];
    if !spec.is_object() {
        *spec = json!({});
    }
    spec["username"] = json!(caller.name);
    spec["uid"] = json!(caller.uid);
    spec["groups"] = json!(caller.groups);
    spec["extra"] = json!(caller.extra);
    object["status"] = json!({});
}

pub(super) fn prepare_update(request: &ResourceRequest, object: &mut Value, current: &Value) {
    object["spec"] = current["spec"].clone();
    let offered = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let standing = current["status"]["conditions"].as_array().cloned().unwrap_or_default();
    match request.target.subresource.as_str() {
        "approval" => {
            // Of the status it changes the conditions alone; labels and annotations as well.
            object["status"] = match &current["status"] {
                Value::Object(status) => Value::Object(status.clone()),
                _ => json!({}),
            };
            object["status"]["conditions"] = json!(timed(request, offered, &standing));
        }
        "status" => {
            // Decisions are not made here: those that stand stay, others are dropped.
            let decided = standing.iter().filter(|one| is_decision(one)).cloned();
            let others = offered.into_iter().filter(|one| !is_decision(one));
            let all = decided.chain(others).collect();
            if !object["status"].is_object() {
                object["status"] = json!({});
            }
            object["status"]["conditions"] = json!(timed(request, all, &standing));
        }
        _ => {}
    }
}

fn is_decision(condition: &Value) -> bool {
    DECISIONS.contains(&condition["type"].as_str().unwrap_or_default())
}

/// Fills in when conditions were set and changed.
fn timed(request: &ResourceRequest, conditions: Vec<Value>, standing: &[Value]) -> Vec<Value> {
    let now = seconds(request.server.now());
    let mut timed = conditions;
    for condition in &mut timed {
        let before = standing.iter().find(|one| one["type"] == condition["type"]);
        let is_same = before.is_some_and(|one| one["status"] == condition["status"]);
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = json!(now);
        }
        if condition["lastTransitionTime"].is_null() {
            let kept = before.filter(|_| is_same).map(|one| one["lastTransitionTime"].clone());
            condition["lastTransitionTime"] = kept.unwrap_or_else(|| json!(now));
        }
    }
    timed
}

pub(super) fn validate(subresource: &str, object: &Value, old: Option<&Value>) -> Errors {
    let root = At::root(object);
    let spec = root.get("spec");
    let mut errors = Errors::new();
    if old.is_none() {
        let csr = spec.get("request");
        if csr.is_empty() || !is_request(csr.text()) {
            errors.push(csr.invalid_as(csr.text(), "PEM block type must be CERTIFICATE REQUEST"));
        }
        if spec.get("usages").is_empty() {
            errors.push(spec.get("usages").required(""));
        }
        let signer = spec.get("signerName");
        if signer.is_empty() {
            errors.push(signer.required(""));
        } else if !signer.text().contains('/') {
            let detail =
                "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            errors.push(signer.invalid(detail));
        }
        let duration = spec.get("expirationSeconds");
        if duration.integer().is_some_and(|seconds| seconds < 600) {
            errors.push(
                duration.invalid("may not specify a duration less than 600 seconds (10 minutes)"),
            );
        }
    }
    if subresource == "approval" {
        decisions(&root.get("status.conditions"), old, &mut errors);
    }
    errors
}

/// Whether a text is the base64 of what asks for a certificate.
fn is_request(text: &str) -> bool {
    let pem = STANDARD.decode(text).unwrap_or_default();
    memchr::memmem::find(&pem, b"-----BEGIN CERTIFICATE REQUEST-----").is_some()
}

fn decisions(conditions: &At<'_>, old: Option<&Value>, errors: &mut Errors) {
    let mut given: Vec<&str> = Vec::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if kind.is_empty() {
            errors.push(kind.required(""));
        }
        if matches!(kind.text(), "Approved" | "Denied" | "Failed") && status.text() != "True" {
            errors.push(status.unsupported(&["True"]));
        }
        if given.contains(&kind.text()) {
            errors.push(kind.duplicate());
        }
        let clash = match kind.text() {
            "Approved" => given.contains(&"Denied"),
            "Denied" => given.contains(&"Approved"),
            _ => false,
        };
        if clash {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(condition.get("type").invalid(detail));
        }
        given.push(kind.text());
    }
    let standing = old.map(|old| At::root(old).get("status.conditions"));
    for before in standing.map(|list| list.items()).unwrap_or_default() {
        let kind = before.get("type").text();
        if DECISIONS.contains(&kind) && !given.contains(&kind) {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            errors.push(conditions.forbidden(&detail));
        }
    }
}

pub(super) struct SigningRequest;

impl Kind for SigningRequest {
    fn refuse(
        &self,
        request: &ResourceRequest,
        object: &Value,
        old: Option<&Value>,
    ) -> ApiResult<()> {
        refuse(request, object, old)
    }

    fn prepare_create(&self, request: &ResourceRequest, object: &mut Value) -> ApiResult<()> {
        prepare_create(request, object);
        Ok(())
    }

    fn prepare_update(
        &self,
        request: &ResourceRequest,
        object: &mut Value,
        current: &Value,
    ) -> ApiResult<()> {
        prepare_update(request, object, current);
        Ok(())
    }

    fn validate(&self, change: &Change<'_>) -> Errors {
        validate(change.subresource, change.object, change.old)
    }

    fn name_errors(&self, _object: &Value, name: &str) -> Vec<String> {
        path_segment(name)
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["spec.signerName"]
    }

    fn columns(&self) -> &'static [Column] {
        columns::SIGNING_REQUEST
    }
}

pub(super) struct TrustBundle;

impl Kind for TrustBundle {
    fn name_errors(&self, object: &Value, name: &str) -> Vec<String> {
        trust_bundle(name, object["spec"]["signerName"].as_str().unwrap_or_default())
    }

    fn columns(&self) -> &'static [Column] {
        columns::TRUST_BUNDLE
    }
}

/// A request for the certificate of a pod.
pub(super) struct PodRequest;

impl Kind for PodRequest {
    fn columns(&self) -> &'static [Column] {
        columns::POD_REQUEST
    }
}

/// The bundle of a signer is named after it, so that its name says whom it belongs to.
fn trust_bundle(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            let detail = "ClusterTrustBundle without signer name must not have \":\" in its name";
            return vec![detail.to_owned()];
        }
        return Name::Dns1123Subdomain.errors(name);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => Name::Dns1123Subdomain.errors(rest),
        None => vec![format!(
            "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_it_wants_and_of_whom() {
        let csr = STANDARD.encode("-----BEGIN CERTIFICATE REQUEST-----\n");
        let sound = json!({"spec": {"request": csr, "signerName": "example.com/s", "usages": ["client auth"]}});
        assert!(validate("", &sound, None).is_empty());
        assert_eq!(validate("", &json!({"spec": {}}), None).len(), 3);
    }

    #[test]
    fn decisions_and_certificates_come_with_annotations() {
        let test = crate::testing::TestServer::new();
        let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
        let pem = STANDARD.encode("-----BEGIN CERTIFICATE REQUEST-----\n");
        test.create(
            path,
            &json!({"metadata": {"name": "system:node:a"}, "spec": {"request": pem,
                "signerName": "example.com/s", "usages": ["client auth"]}}),
        );
        let patch = |part: &str, body: &Value| {
            let (code, object) = test.call("PATCH", &format!("{path}/system:node:a/{part}"), body);
            assert_eq!(code, 200, "{object}");
            object
        };
        let approved = patch(
            "approval",
            &json!({"metadata": {"annotations": {"by": "approval"}},
                "spec": {"signerName": "example.com/other"},
                "status": {"certificate": "eA==",
                    "conditions": [{"type": "Approved", "status": "True"}]}}),
        );
        assert_eq!(approved["metadata"]["annotations"]["by"], "approval");
        assert_eq!(approved["spec"]["signerName"], "example.com/s");
        assert_eq!(approved["status"]["conditions"][0]["type"], "Approved");
        assert!(approved["status"]["certificate"].is_null(), "{approved}");
        let issued = patch(
            "status",
            &json!({"metadata": {"annotations": {"and": "status"}},
                "status": {"certificate": "eA=="}}),
        );
        assert_eq!(issued["metadata"]["annotations"], json!({"by": "approval", "and": "status"}));
        assert_eq!(issued["status"]["conditions"][0]["type"], "Approved");
        assert_eq!(issued["status"]["certificate"], "eA==");
    }

    #[test]
    fn a_decision_is_made_once() {
        let with = |kinds: &[&str]| {
            let conditions: Vec<Value> =
                kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
            json!({"status": {"conditions": conditions}})
        };
        let old = with(&["Approved"]);
        assert!(validate("approval", &with(&["Approved"]), Some(&old)).is_empty());
        assert_eq!(validate("approval", &with(&["Approved", "Denied"]), Some(&old)).len(), 1);
        assert_eq!(validate("approval", &with(&[]), Some(&old)).len(), 1);
    }
}
