//! Sends the writes of components over HTTP.

use http::{Method, Request as HttpRequest};
use kube::Client;
use serde_json::Value;

use crate::component::{Key, Kind, WriteRequest, WriteResponse, WriteVerb};
use crate::shared_object::SharedObject;

/// Sends one write.
pub(super) async fn send(client: &Client, request: &WriteRequest) -> WriteResponse {
    let http = match http(request) {
        Ok(http) => http,
        Err(error) => return WriteResponse::Failed(error.to_string()),
    };
    match client.request::<Value>(http).await {
        Ok(object) => done(request, object.into()),
        Err(kube::Error::Api(status)) => refused(status.code, &status.reason, &status.message),
        Err(error) => WriteResponse::Failed(error.to_string()),
    }
}

fn http(request: &WriteRequest) -> Result<HttpRequest<Vec<u8>>, http::Error> {
    let HttpParts { method, uri, content_type, body } = http_parts(request);
    let builder = HttpRequest::builder().method(method).uri(uri);
    builder.header(http::header::CONTENT_TYPE, content_type).body(body.to_string().into_bytes())
}

/// Method, path and body of a request.
pub(crate) struct HttpParts<'r> {
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'r Value,
}

pub(crate) fn http_parts(request: &WriteRequest) -> HttpParts<'_> {
    let path = path(&request.key);
    let name = &request.key.name;
    let (method, uri, content_type, body) = match &request.write {
        WriteVerb::Create(object) => (Method::POST, path, JSON, object),
        WriteVerb::Merge(patch) => (Method::PATCH, format!("{path}/{name}"), MERGE, patch),
        WriteVerb::MergeStatus(patch) => {
            (Method::PATCH, format!("{path}/{name}/status"), MERGE, patch)
        }
        WriteVerb::Bind(binding) => (Method::POST, format!("{path}/{name}/binding"), JSON, binding),
        WriteVerb::Delete(options) => (Method::DELETE, format!("{path}/{name}"), JSON, options),
    };
    HttpParts { method, uri: format!("{uri}?fieldManager=convoy-sim"), content_type, body }
}

/// The response to a write that succeeded.
pub(crate) fn done(request: &WriteRequest, object: SharedObject) -> WriteResponse {
    let is_object = !matches!(request.write, WriteVerb::Bind(_) | WriteVerb::Delete(_));
    WriteResponse::Done(is_object.then_some(object))
}

/// The response to a write that failed.
pub(crate) fn refused(code: u16, reason: &str, message: &str) -> WriteResponse {
    match (code, reason) {
        (404, _) => WriteResponse::Missing,
        (409, "AlreadyExists") => WriteResponse::Exists,
        (409, _) => WriteResponse::Conflict,
        _ => WriteResponse::Failed(message.to_owned()),
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn path(key: &Key) -> String {
    match key.kind {
        Kind::Pod => format!("/api/v1/namespaces/{}/pods", key.namespace),
        Kind::Event => format!("/api/v1/namespaces/{}/events", key.namespace),
        Kind::Node => "/api/v1/nodes".to_owned(),
        Kind::Lease => {
            format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", key.namespace)
        }
    }
}
