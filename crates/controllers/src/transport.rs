//! Sends requests through the kube client and reads the responses. Reads need a client only; writes
//! need a [`Writer`].

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::Client;
use serde_json::Value;

use crate::distrust;
use crate::fence::{Fence, Refusal};
use crate::request::Request;
use crate::response::Response;
use crate::trimmed::Trimmed;

/// The time limit of a request that is not a watch and not fenced.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

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
    #[error("no response within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// It was not sent.
    #[error(transparent)]
    Fenced(#[from] Refusal),
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

/// The only way to send a write, and there is a [`Fence`] before it. A loop without leader election
/// has [`Fence::none`].
#[derive(Clone)]
pub(crate) struct Writer {
    client: Client,
    fence: Fence,
    /// The time limit of a write that is not fenced.
    limit: Duration,
}

impl Writer {
    pub(crate) fn new(client: Client, fence: Fence) -> Self {
        Self { client, fence, limit: TIMEOUT }
    }

    /// The same with another time limit for writes that are not fenced.
    pub(crate) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Sends a write and parses the response, whatever its code.
    pub(crate) async fn write(&self, request: Request) -> Result<Response, TransportError> {
        Ok(self.fetch(request).await?.read())
    }

    /// Sends a write and returns the response, whatever its code. Under a lease the write is sent
    /// with the time limits of the lease, to the server as well, which else could apply it when
    /// another process leads.
    pub(crate) async fn fetch(&self, request: Request) -> Result<RawResponse, TransportError> {
        let (write, timing) = self.fence.enter()?;
        let Some(timing) = timing else {
            return exchange(&self.client, http_request(request)?, self.limit).await;
        };
        let path = with_timeout(&request.path, timing.server_limit());
        let mut sent = http_request(Request { path, ..request })?;
        sent.extensions_mut().insert(self.fence.clone());
        let response = exchange(&self.client, sent, timing.request_limit()).await?;
        // A server that gave up may still apply the write.
        if response.code < 500 && response.code != 408 {
            write.answered();
        }
        Ok(response)
    }
}

/// Reads a path and parses the response, whatever its code.
pub(crate) async fn read(
    client: &Client,
    path: impl Into<String>,
) -> Result<Response, TransportError> {
    Ok(fetch_within(client, path, TIMEOUT).await?.read())
}

/// Sends a question, which an API server answers and does not store, and parses the response.
pub(crate) async fn ask(
    client: &Client,
    path: &str,
    question: Value,
) -> Result<Response, TransportError> {
    Ok(exchange(client, http_request(Request::create(path, question))?, TIMEOUT).await?.read())
}

/// Reads a path within a time limit and returns the response, whatever its code.
pub(crate) async fn fetch_within(
    client: &Client,
    path: impl Into<String>,
    limit: Duration,
) -> Result<RawResponse, TransportError> {
    exchange(client, http_request(Request::get(path))?, limit).await
}

async fn exchange(
    client: &Client,
    request: http::Request<Vec<u8>>,
    limit: Duration,
) -> Result<RawResponse, TransportError> {
    let exchange = async {
        #[expect(clippy::disallowed_methods, reason = "reads, and writes behind the fence")]
        let response = client.send(request.map(kube::client::Body::from)).await;
        let (head, body) = response.map_err(TransportError::Send)?.into_parts();
        let text = body.collect().await.map_err(TransportError::Read)?.to_bytes();
        let seconds = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        Ok(RawResponse { code: head.status.as_u16(), retry_after, text })
    };
    let ended = tokio::time::timeout(limit, exchange).await;
    ended.unwrap_or(Err(TransportError::Timeout(limit)))
}

/// A path whose request the server gives up after `limit`.
fn with_timeout(path: &str, limit: Duration) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}timeout={}ms", limit.as_millis())
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

/// An error with its causes, in one line, and what to do about a certificate. Some errors name their
/// cause themselves: nothing is said twice.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut message = causes(error);
    if let Some(advice) = distrust::advice(error) {
        message = format!("{message}; {advice}");
    }
    message
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_names_is_not_repeated() {
        let error = TransportError::Send(kube::Error::Service("no route".into()));
        assert_eq!(chain(&error), "could not reach the server: ServiceError: no route");
    }

    #[test]
    fn the_server_is_told_when_to_give_up() {
        let limit = Duration::from_secs(3);
        assert_eq!(with_timeout("/api/v1/pods/a", limit), "/api/v1/pods/a?timeout=3000ms");
        assert_eq!(with_timeout("/api?a=b", limit), "/api?a=b&timeout=3000ms");
    }
}
