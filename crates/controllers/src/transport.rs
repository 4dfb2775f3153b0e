//! Sends requests through the kube client and reads the responses.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::Client;
use serde_json::Value;

use crate::request::Request;
use crate::response::Response;
use crate::trimmed::Trimmed;

/// The time limit of every request that is not a watch.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    #[error("could not build a request for {path}")]
    Build {
        path: String,
        #[source]
        source: http::Error,
    },
    #[error("could not reach the server")]
    Send(#[source] kube::Error),
    #[error("could not read the response")]
    Read(#[source] kube::Error),
    #[error("no response within {} s", TIMEOUT.as_secs())]
    Timeout,
}

/// A response whose body is not parsed.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) code: u16,
    retry_after: Option<Duration>,
    pub(crate) text: Bytes,
}

impl RawResponse {
    pub(crate) fn read(self) -> Response {
        let body = serde_json::from_slice(&self.text).unwrap_or(Value::Null);
        Response { code: self.code, retry_after: self.retry_after, body }
    }

    /// The response without `metadata.managedFields`.
    pub(crate) fn trimmed(self) -> Response {
        let body = serde_json::from_slice(&self.text).map_or(Value::Null, |Trimmed(body)| body);
        Response { code: self.code, retry_after: self.retry_after, body }
    }
}

/// Sends a request and parses the response, whatever its code.
pub(crate) async fn send(client: &Client, request: Request) -> Result<Response, TransportError> {
    Ok(fetch(client, request).await?.read())
}

/// Sends a request and returns the response, whatever its code.
pub(crate) async fn fetch(
    client: &Client,
    request: Request,
) -> Result<RawResponse, TransportError> {
    let sent = http_request(request)?;
    let exchange = async {
        let response = client.send(sent.map(kube::client::Body::from)).await;
        let (head, body) = response.map_err(TransportError::Send)?.into_parts();
        let text = body.collect().await.map_err(TransportError::Read)?.to_bytes();
        let seconds = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        Ok(RawResponse { code: head.status.as_u16(), retry_after, text })
    };
    tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or(Err(TransportError::Timeout))
}

pub(crate) fn http_request(request: Request) -> Result<http::Request<Vec<u8>>, TransportError> {
    let Request { method, path, content_type, body } = request;
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let sent = http::Request::builder()
        .method(method)
        .uri(&path)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, content_type)
        .body(bytes);
    sent.map_err(|source| TransportError::Build { path, source })
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}
