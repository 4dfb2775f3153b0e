//! A connection that fails on purpose: of writes some are refused and some lose their answer, of
//! reads some fail, and watches are held up and broken off.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use convoy_sim::seed::Seed;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A connection that ends badly.
#[derive(Debug)]
struct Broken(&'static str);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Broken {}

type Body = UnsyncBoxBody<Bytes, Broken>;

#[derive(Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    seed: Seed,
    drawn: AtomicU32,
    faults: AtomicU32,
    writes: AtomicU32,
}

impl Proxy {
    /// Leads to the server that `client` leads to.
    pub(crate) async fn start(client: Client, seed: Seed) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seed = seed.child("proxy", "");
        let [drawn, faults, writes] = [0; 3].map(AtomicU32::new);
        let inner = Arc::new(Inner { client, seed, drawn, faults, writes });
        let served = Arc::clone(&inner);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let inner = Arc::clone(&served);
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let inner = Arc::clone(&inner);
                        async move { inner.answer(request).await }
                    });
                    // Connections end badly here; that is what this is for.
                    drop(
                        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await,
                    );
                });
            }
        });
        Self { address, inner }
    }

    pub(crate) fn kubeconfig(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "through",
            "clusters": [{"name": "through", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "through", "user": {}}],
            "contexts": [{"name": "through", "context": {"cluster": "through", "user": "through"}}]})
    }

    /// How often something went wrong on purpose.
    pub(crate) fn faults(&self) -> u32 {
        self.inner.faults.load(Ordering::Relaxed)
    }

    /// How many writes were asked for, whatever became of them.
    pub(crate) fn writes(&self) -> u32 {
        self.inner.writes.load(Ordering::Relaxed)
    }
}

impl Inner {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let is_write = request.method() != Method::GET;
        self.writes.fetch_add(u32::from(is_write), Ordering::Relaxed);
        if is_write && self.strikes(150) {
            let code = [409, 429, 500][usize::try_from(self.draw().between(0, 2)).unwrap()];
            return Ok(refusal(code));
        }
        if !is_write && self.strikes(30) {
            return Ok(refusal(500));
        }
        let response = self.forward(request).await?;
        if is_write && self.strikes(70) {
            return Err(Broken("the answer is lost"));
        }
        Ok(if is_watch { self.disturbed(response) } else { response })
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Broken> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Broken("the caller went"))?.to_bytes();
        let path = head.uri.path_and_query().unwrap().as_str();
        let mut sent = Request::builder().method(head.method).uri(path);
        for name in [http::header::ACCEPT, http::header::CONTENT_TYPE] {
            if let Some(value) = head.headers.get(&name) {
                sent = sent.header(name, value);
            }
        }
        let sent = sent.body(kube::client::Body::from(body.to_vec())).unwrap();
        let answer = self.client.send(sent).await.map_err(|_| Broken("the server went"))?;
        let (head, body) = answer.into_parts();
        let mut response = Response::builder().status(head.status);
        if let Some(kind) = head.headers.get(http::header::CONTENT_TYPE) {
            response = response.header(http::header::CONTENT_TYPE, kind);
        }
        let body = body.map_err(|_| Broken("the server went")).boxed_unsync();
        Ok(response.body(body).unwrap())
    }

    /// The same watch, whose events come late and which breaks off after some.
    fn disturbed(self: Arc<Self>, response: Response<Body>) -> Response<Body> {
        let (to, frames) = mpsc::channel::<Result<Frame<Bytes>, Broken>>(1);
        let (head, mut body) = response.into_parts();
        let length = self.draw().between(1, 40);
        tokio::spawn(async move {
            for _ in 0..length {
                let Some(frame) = body.frame().await else { return };
                if self.strikes(100) {
                    let millis = self.draw().between(10, 1_000).unsigned_abs();
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                }
                if to.send(frame).await.is_err() {
                    return;
                }
            }
            self.faults.fetch_add(1, Ordering::Relaxed);
            drop(to.send(Err(Broken("the watch breaks off"))).await);
        });
        let frames = futures_util::stream::unfold(frames, async |mut frames| {
            frames.recv().await.map(|frame| (frame, frames))
        });
        Response::from_parts(head, StreamBody::new(frames).boxed_unsync())
    }

    /// True in so many of a thousand cases, which are counted.
    fn strikes(&self, thousandths: u32) -> bool {
        let strikes = self.draw().millionths() / 1_000 < thousandths;
        self.faults.fetch_add(u32::from(strikes), Ordering::Relaxed);
        strikes
    }

    fn draw(&self) -> Seed {
        self.seed.nth(self.drawn.fetch_add(1, Ordering::Relaxed))
    }
}

fn refusal(code: u16) -> Response<Body> {
    let text = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": "a fault"});
    let body = Full::new(Bytes::from(text.to_string())).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}
