//! A server in this process and a client of it, for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bytes::Bytes;
use convoy_store::{MemoryBackend, Settings};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::access::{Access, Peer};
use crate::handler::handle;
use crate::metrics::Metrics;
use crate::object_meta::Store;
use crate::server::{Limits, Server};
use crate::surroundings::Surroundings;

/// A server whose clock stands still, with a runtime to call it in.
pub(crate) struct TestServer {
    pub(crate) server: Arc<Server>,
    clock: Arc<Still>,
    runtime: tokio::runtime::Runtime,
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

/// The test instant, moved only by tests, and numbers for chance.
#[derive(Debug, Default)]
struct Still {
    drawn: AtomicU64,
    ahead_secs: AtomicI64,
}

impl Surroundings for Still {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        start + SignedDuration::from_secs(self.ahead_secs.load(Ordering::Relaxed))
    }

    fn random(&self) -> [u8; 16] {
        let number = u128::from(self.drawn.fetch_add(1, Ordering::Relaxed));
        // Spread over all bytes, so that short texts made of them differ too.
        (number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)).to_le_bytes()
    }
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::limited(Limits::default())
    }

    /// A server with the namespace `default`.
    pub(crate) fn with_namespace() -> Self {
        let test = Self::new();
        let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "default"}});
        test.create("/api/v1/namespaces", &namespace);
        test
    }

    /// A server with other limits than the usual ones.
    pub(crate) fn limited(limits: Limits) -> Self {
        let settings = Settings { inline: true, ..Settings::default() };
        Self::with(Store::open(MemoryBackend, settings).expect("memory opens"), limits)
    }

    /// A server over a store that another one may have filled.
    pub(crate) fn over(store: Store) -> Self {
        Self::with(store, Limits::default())
    }

    fn with(store: Store, limits: Limits) -> Self {
        let clock = Arc::new(Still::default());
        let surroundings: Arc<dyn Surroundings> = clock.clone();
        let server = Arc::new(Server::new(store, surroundings, limits));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { server, clock, runtime: runtime.expect("a runtime") }
    }

    /// Lets time pass.
    pub(crate) fn advance_secs(&self, seconds: i64) {
        self.clock.ahead_secs.fetch_add(seconds, Ordering::Relaxed);
    }

    /// The same server under other rules of access.
    pub(crate) fn with_access(self, access: Access) -> Self {
        let server = Arc::into_inner(self.server).expect("nobody else holds it yet");
        Self { server: Arc::new(server.with_access(access)), ..self }
    }

    /// The same server, counting together with others.
    pub(crate) fn with_metrics(self, metrics: Metrics) -> Self {
        let server = Arc::into_inner(self.server).expect("nobody else holds it yet");
        Self { server: Arc::new(server.with_metrics(metrics)), ..self }
    }

    /// Sends a request as the server itself would, and reads the whole response.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answered {
        let peer = Peer { is_local: true, ..Peer::default() };
        self.send_as(&peer, method, path, headers, body)
    }

    /// Sends a request over somebody's connection, and reads the whole response.
    pub(crate) fn send_as(
        &self,
        peer: &Peer,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        self.runtime.block_on(async {
            let (meta, body) = handle(&self.server, request, peer).await.into_parts();
            let bytes = body.collect().await.expect("bodies do not fail").to_bytes();
            Answered { code: meta.status.as_u16(), headers: meta.headers, bytes }
        })
    }

    /// Sends a request with a JSON body; returns the code and the JSON of the response.
    pub(crate) fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let media = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answered = self.send(method, path, &[("content-type", media)], body);
        (answered.code, answered.json())
    }

    /// What stands at a path, which must be there.
    pub(crate) fn get(&self, path: &str) -> Value {
        let (code, value) = self.call("GET", path, &Value::Null);
        assert_eq!(code, 200, "{path}: {value}");
        value
    }

    /// Creates an object, which must succeed.
    pub(crate) fn create(&self, path: &str, object: &Value) -> Value {
        let (code, value) = self.call("POST", path, object);
        assert_eq!(code, 201, "{path}: {value}");
        value
    }

    /// Runs something of the server's own to its end.
    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
