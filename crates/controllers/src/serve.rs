//! Metrics and health endpoints over HTTP.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// A listener that serves metrics and health.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
}

impl Endpoint {
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await? })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is dropped.
    pub fn run(self, metrics: Arc<Metrics>) -> BoxFuture<'static, ()> {
        Box::pin(self.accept(metrics))
    }

    async fn accept(self, metrics: Arc<Metrics>) {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of file descriptors; retry once some are closed.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let metrics = Arc::clone(&metrics);
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    let response = respond(&metrics, request.uri().path());
                    async move { Ok::<_, Infallible>(response) }
                });
                let mut server = http1::Builder::new();
                let connection =
                    server.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
                if let Err(error) = connection.await {
                    tracing::trace!(%error, "a connection failed");
                }
            });
        }
    }
}

fn respond(metrics: &Metrics, path: &str) -> Response<Full<Bytes>> {
    let (code, text) = match path {
        "/metrics" => (StatusCode::OK, metrics.text()),
        "/healthz" | "/livez" => (StatusCode::OK, "ok".to_owned()),
        "/readyz" if metrics.is_ready() => (StatusCode::OK, "ok".to_owned()),
        "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "not all kinds are listed yet".to_owned()),
        _ => (
            StatusCode::NOT_FOUND,
            "not found; available: /metrics, /healthz, /livez, /readyz".to_owned(),
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    let kind = match path {
        "/metrics" => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_follows_the_first_lists() {
        let metrics = Metrics::default();
        assert_eq!(respond(&metrics, "/readyz").status(), StatusCode::SERVICE_UNAVAILABLE);
        metrics.set_ready(true);
        assert_eq!(respond(&metrics, "/readyz").status(), StatusCode::OK);
        assert_eq!(respond(&metrics, "/metrics").status(), StatusCode::OK);
        assert_eq!(respond(&metrics, "/").status(), StatusCode::NOT_FOUND);
    }
}
