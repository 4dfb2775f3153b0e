//! The connection of a control loop that may lose its leadership. A request that carries a
//! [`Fence`] looks at it once more when the connection takes its bytes: between the first look and
//! this one it may have waited for credentials, a free connection or a TLS handshake.
//!
//! `kube` retries writes that the server refuses with 429, 503 or 504 without a look at any fence,
//! so its retries are left out here: the control loop decides again instead.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Builder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};
use tower_service::Service;

use crate::fence::Fence;

/// A client whose fenced writes are not sent after the end of a tenure. If the network delivers
/// nothing for `undelivered`, the kernel drops what it holds, so that it is not delivered later.
pub(crate) fn client(config: Config, undelivered: Duration) -> Result<Client, kube::Error> {
    if config.proxy_url.is_some() {
        // kube's error says that proxies need a feature.
        return Client::try_from(config);
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    http.set_tcp_user_timeout(Some(undelivered));
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = undelivered;
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(http)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let connection = Builder::new(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(FencedConnection { connection });
    Ok(Client::new(service, config.default_namespace))
}

/// Sends requests with a [`FencedBody`].
#[derive(Clone)]
struct FencedConnection<S> {
    connection: S,
}

impl<S> Service<Request<Body>> for FencedConnection<S>
where
    S: Service<Request<FencedBody>, Response = Response<Incoming>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connection.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let fence = request.extensions_mut().remove::<Fence>().unwrap_or_default();
        self.connection.call(request.map(|body| FencedBody { body, fence }))
    }
}

/// A body that ends in an error if its fence is closed. Every write has one. HTTP/1, the only
/// protocol of this connection, takes it in the same poll in which it writes to the socket.
struct FencedBody {
    body: Body,
    fence: Fence,
}

impl http_body::Body for FencedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Err(refusal) = self.fence.look() {
            return Poll::Ready(Some(Err(refusal.into())));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(Into::into)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::connect::identified;
    use crate::fence::Clock;
    use crate::request::Request;
    use crate::tenure::{LeaseTiming, Succession, Tenure};
    use crate::transport::Writer;

    /// A clock that jumps forward once it was read so many times: the process was stopped.
    struct Jump {
        after: u64,
        reads: AtomicU64,
    }

    impl Clock for Jump {
        fn now(&self) -> Duration {
            let reads = self.reads.fetch_add(1, Ordering::Relaxed);
            Duration::from_secs(if reads < self.after { 0 } else { 3_600 })
        }
    }

    /// What a server receives when the clock jumps after `after` looks, and whether the write
    /// succeeded.
    async fn received(after: u64) -> (String, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut text, mut buffer) = (String::new(), [0; 4096]);
            while !text.contains("precious") {
                let count = stream.read(&mut buffer).await.unwrap_or(0);
                if count == 0 {
                    return text;
                }
                text.push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
            let response = "HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(response.as_bytes()).await.unwrap();
            text
        });
        let margin = Duration::from_secs(5);
        let client = client(identified(Config::new(url.parse().unwrap())), margin).unwrap();
        let fence = Fence::new(Arc::new(Jump { after, reads: AtomicU64::new(0) }));
        let timing = LeaseTiming::new(Duration::from_secs(15));
        fence.begin(Tenure::new(timing, Duration::ZERO, Succession::Free));
        let request = Request::create("/api/v1/namespaces/a/pods", json!({"is": "precious"}));
        let written = Writer::new(client, fence).write(request).await;
        (server.await.unwrap(), written.is_ok_and(|response| response.code == 201))
    }

    #[tokio::test]
    async fn a_write_that_waited_for_its_connection_is_not_sent_after_the_end() {
        let (text, is_done) = received(u64::MAX).await;
        assert!(is_done && text.contains("timeout=3000ms"), "{text}");
        assert!(text.contains("user-agent: convoy/"), "logs of servers say who asks: {text}");
        // One look and one note of the instant come before the connection's look.
        let (text, is_done) = received(2).await;
        assert!(!is_done && !text.contains("precious"), "{text}");
    }
}
