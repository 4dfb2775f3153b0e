//! The server as the transport of a client in the same process: no socket, no TLS, the same
//! handler.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::access::Peer;
use crate::body::Body;
use crate::handler;
use crate::server::Server;

/// What `kube::Client::new` takes: requests go straight to the handler.
#[derive(Clone, Debug)]
pub struct Transport {
    server: Arc<Server>,
    peer: Arc<Peer>,
    /// Put before every path: the logical cluster.
    prefix: Arc<str>,
}

impl Transport {
    /// For the server's own parts, which it trusts as itself.
    pub fn trusted(server: &Arc<Server>, cluster: &str) -> Self {
        let prefix =
            if cluster.is_empty() { String::new() } else { format!("/clusters/{cluster}") };
        let peer = Peer { is_local: true, ..Peer::default() };
        Self { server: Arc::clone(server), peer: Arc::new(peer), prefix: prefix.into() }
    }

    /// Sends one request, and parses the response: its code and its body, which is null if it is
    /// not JSON.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(bytes)));
        let Ok(request) = request else { return (400, Value::Null) };
        let response = handler::handle(&self.server, self.in_cluster(request), &self.peer).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await;
        let bytes = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn in_cluster<B>(&self, mut request: Request<B>) -> Request<B> {
        let text = request.uri().path_and_query().map_or("/", |path| path.as_str());
        // A prefix of plain characters before a sound path is a sound path.
        if let Ok(uri) = format!("{}{text}", self.prefix).parse() {
            *request.uri_mut() = uri;
        }
        request
    }
}

impl<B> tower_service::Service<Request<B>> for Transport
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = self.in_cluster(request);
        let (server, peer) = (Arc::clone(&self.server), Arc::clone(&self.peer));
        Box::pin(async move { Ok(handler::handle(&server, request, &peer).await) })
    }
}
