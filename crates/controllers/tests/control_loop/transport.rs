//! The server as a client's transport, with a hand in between that may answer for it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use convoy_apiserver::transport::Transport;
use http::{Method, Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::Client;
use serde_json::{Value, json};
use tower_service::Service;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What becomes of a request.
pub(crate) enum Fate {
    Sound,
    /// Not carried out, and answered so.
    Answer(u16, Value),
    /// Carried out, and answered with a failure all the same.
    Failed,
    /// A defect in the client's own process.
    Panic,
    /// Not carried out, and never answered.
    Silence,
}

impl Fate {
    pub(crate) fn refused(code: u16) -> Self {
        Self::Answer(code, json!({"kind": "Status", "code": code, "message": "a fault"}))
    }
}

type Hand = dyn Fn(&Method, &Uri) -> Fate + Send + Sync;

#[derive(Clone)]
struct Meddled {
    inner: Transport,
    hand: Arc<Hand>,
}

/// A client of the server behind `inner` whose requests meet the fate that `hand` says.
pub(crate) fn meddled(
    inner: Transport,
    hand: impl Fn(&Method, &Uri) -> Fate + Send + Sync + 'static,
) -> Client {
    Client::new(Meddled { inner, hand: Arc::new(hand) }, "default")
}

/// Whether a request writes something that loops decided.
pub(crate) fn is_write(method: &Method, uri: &Uri) -> bool {
    method != Method::GET && !uri.path().contains("/events")
}

pub(crate) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.contains("watch=true"))
}

impl<B> Service<Request<B>> for Meddled
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
        let fate = (self.hand)(request.method(), request.uri());
        match fate {
            Fate::Answer(code, body) => return Box::pin(async move { Ok(answer(code, &body)) }),
            Fate::Silence => return Box::pin(std::future::pending()),
            Fate::Sound | Fate::Failed | Fate::Panic => {}
        }
        let carried_out = Service::call(&mut self.inner, request);
        Box::pin(async move {
            assert!(!matches!(fate, Fate::Panic), "a defect on purpose");
            let response = carried_out.await?;
            if matches!(fate, Fate::Failed) {
                return Ok(answer(500, &json!({"kind": "Status", "message": "a fault"})));
            }
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}

fn answer(code: u16, body: &Value) -> Response<UnsyncBoxBody<Bytes, Failure>> {
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
    Response::builder().status(code).body(body.boxed_unsync()).unwrap()
}
