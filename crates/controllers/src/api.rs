//! Requests on their way: one function between what is asked and what is answered.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::Client;
use serde_json::Value;

use crate::outcome::Answer;
use crate::request::Request;
use crate::trimmed::Trimmed;

/// Longer than any request that is no watch takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("could not form a request for {path}")]
    Form {
        path: String,
        #[source]
        source: http::Error,
    },
    #[error("could not reach the server")]
    Send(#[source] kube::Error),
    #[error("could not read the answer")]
    Read(#[source] kube::Error),
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
}

/// An answer as it arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) code: u16,
    retry_after: Option<Duration>,
    pub(crate) text: Bytes,
}

impl Arrived {
    pub(crate) fn read(self) -> Answer {
        let body = serde_json::from_slice(&self.text).unwrap_or(Value::Null);
        Answer { code: self.code, retry_after: self.retry_after, body }
    }

    /// The same, as far as a cache keeps it.
    pub(crate) fn trimmed(self) -> Answer {
        let body = serde_json::from_slice(&self.text).map_or(Value::Null, |Trimmed(body)| body);
        Answer { code: self.code, retry_after: self.retry_after, body }
    }
}

/// Sends a request and reads the answer, whatever its code.
pub(crate) async fn send(client: &Client, request: Request) -> Result<Answer, ApiError> {
    Ok(fetch(client, request).await?.read())
}

/// Sends a request and takes the answer, whatever its code.
pub(crate) async fn fetch(client: &Client, request: Request) -> Result<Arrived, ApiError> {
    let sent = form(request)?;
    let exchange = async {
        let answer = client.send(sent.map(kube::client::Body::from)).await;
        let (head, body) = answer.map_err(ApiError::Send)?.into_parts();
        let text = body.collect().await.map_err(ApiError::Read)?.to_bytes();
        let seconds = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        Ok(Arrived { code: head.status.as_u16(), retry_after, text })
    };
    tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or(Err(ApiError::Timeout))
}

pub(crate) fn form(request: Request) -> Result<http::Request<Vec<u8>>, ApiError> {
    let Request { method, path, content_type, body } = request;
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let sent = http::Request::builder()
        .method(method)
        .uri(&path)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, content_type)
        .body(bytes);
    sent.map_err(|source| ApiError::Form { path, source })
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
