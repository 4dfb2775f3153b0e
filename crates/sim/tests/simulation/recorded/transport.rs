//! The server as the transport of a control loop, which notes what the loop has written.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use convoy_apiserver::transport::Transport;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower_service::Service;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The resource versions that loops have written; they are unique on a server.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenVersions(Arc<Mutex<BTreeSet<u64>>>);

impl WrittenVersions {
    pub(super) fn contains(&self, version: u64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&version)
    }

    fn note(&self, response: &[u8]) {
        let body: Value = serde_json::from_slice(response).unwrap_or_default();
        let version = body["metadata"]["resourceVersion"].as_str();
        if let Some(version) = version.and_then(|version| version.parse().ok()) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(version);
        }
    }
}

#[derive(Clone)]
pub(super) struct Noted {
    pub(super) inner: Transport,
    pub(super) written: WrittenVersions,
}

impl<B> Service<Request<B>> for Noted
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Failure>,
{
    type Response = Response<UnsyncBoxBody<Bytes, Failure>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_write = request.method() != Method::GET;
        let carried_out = Service::call(&mut self.inner, request);
        let written = self.written.clone();
        Box::pin(async move {
            let response = carried_out.await?;
            if !is_write || !response.status().is_success() {
                return Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()));
            }
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            written.note(&body);
            let body = Full::new(body).map_err(Into::into).boxed_unsync();
            Ok(Response::from_parts(head, body))
        })
    }
}
