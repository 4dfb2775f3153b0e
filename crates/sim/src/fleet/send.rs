//! Requests on their way: a part's write as an HTTP exchange.

use http::{Method, Request as Http};
use kube::Client;
use serde_json::Value;

use crate::known::Known;
use crate::part::{Answer, Key, Kind, Request, Write};

/// Carries out one write.
pub(super) async fn send(client: &Client, request: &Request) -> Answer {
    let http = match http(request) {
        Ok(http) => http,
        Err(error) => return Answer::Failed(error.to_string()),
    };
    match client.request::<Value>(http).await {
        Ok(object) => done(request, object.into()),
        Err(kube::Error::Api(status)) => refused(status.code, &status.reason, &status.message),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

fn http(request: &Request) -> Result<Http<Vec<u8>>, http::Error> {
    let Form { method, uri, content_type, body } = form(request);
    let builder = Http::builder().method(method).uri(uri);
    builder.header(http::header::CONTENT_TYPE, content_type).body(body.to_string().into_bytes())
}

/// What is sent of a request.
pub(crate) struct Form<'r> {
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'r Value,
}

pub(crate) fn form(request: &Request) -> Form<'_> {
    let path = path(&request.key);
    let name = &request.key.name;
    let (method, uri, content_type, body) = match &request.write {
        Write::Create(object) => (Method::POST, path, JSON, object),
        Write::Merge(patch) => (Method::PATCH, format!("{path}/{name}"), MERGE, patch),
        Write::MergeStatus(patch) => (Method::PATCH, format!("{path}/{name}/status"), MERGE, patch),
        Write::Bind(binding) => (Method::POST, format!("{path}/{name}/binding"), JSON, binding),
        Write::Delete(options) => (Method::DELETE, format!("{path}/{name}"), JSON, options),
    };
    Form { method, uri: format!("{uri}?fieldManager=convoy-sim"), content_type, body }
}

/// What a success says.
pub(crate) fn done(request: &Request, object: Known) -> Answer {
    let is_object = !matches!(request.write, Write::Bind(_) | Write::Delete(_));
    Answer::Done(is_object.then_some(object))
}

/// What a refusal says.
pub(crate) fn refused(code: u16, reason: &str, message: &str) -> Answer {
    match (code, reason) {
        (404, _) => Answer::Missing,
        (409, "AlreadyExists") => Answer::Exists,
        (409, _) => Answer::Conflict,
        _ => Answer::Failed(message.to_owned()),
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn path(key: &Key) -> String {
    match key.kind {
        Kind::Pod => format!("/api/v1/namespaces/{}/pods", key.namespace),
        Kind::Node => "/api/v1/nodes".to_owned(),
        Kind::Lease => {
            format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", key.namespace)
        }
    }
}
