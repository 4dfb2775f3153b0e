//! The connection of a member's agent to an API server, as the events of a scenario have it: a
//! layer around the transport of a client.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use jiff::SignedDuration;
use serde_json::json;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower_service::Service;

use crate::scenario::{LinkSchedule, LinkState};

type BoxError = Box<dyn Error + Send + Sync>;
type Reply = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// A transport whose requests are lost, delayed or refused at times.
#[derive(Clone, Debug)]
pub struct Link<S> {
    inner: S,
    clock: Arc<Clock>,
}

#[derive(Debug)]
struct Clock {
    schedule: LinkSchedule,
    begun: Instant,
    requests: AtomicU32,
}

impl<S> Link<S> {
    /// A connection whose time begins now.
    pub fn new(inner: S, schedule: LinkSchedule) -> Self {
        let clock = Clock { schedule, begun: Instant::now(), requests: AtomicU32::new(0) };
        Self { inner, clock: Arc::new(clock) }
    }
}

impl Clock {
    fn elapsed(&self) -> SignedDuration {
        SignedDuration::try_from(self.begun.elapsed()).unwrap_or(SignedDuration::MAX)
    }

    fn state(&self) -> LinkState {
        self.schedule.at(self.elapsed())
    }

    /// When the connection may change next.
    fn next_change(&self) -> Option<Instant> {
        let at = self.schedule.next_change(self.elapsed())?;
        self.begun.checked_add(at.try_into().ok()?)
    }

    /// Returns once something gets through again, which may be never.
    async fn audible(&self) {
        while self.state().is_silent {
            match self.next_change() {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits as long as a slow connection takes for one request.
    async fn lag(&self, state: &LinkState) {
        if let Some(delay) = state.delay {
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            let delay = delay.draw(self.schedule.seed().nth(number));
            sleep(delay.try_into().unwrap_or_default()).await;
        }
    }
}

impl<S, B, R> Service<Request<B>> for Link<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Reply;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The clone that was polled for readiness makes the call.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            let state = clock.state();
            if state.is_silent {
                clock.audible().await;
                return Err(broken().into());
            }
            if let Some(refusal) = refusal(&state, &request) {
                return Ok(refusal);
            }
            clock.lag(&state).await;
            let (parts, body) = inner.call(request).await.map_err(Into::into)?.into_parts();
            let body = LinkBody::new(body.map_err(Into::into).boxed_unsync(), clock);
            Ok(Response::from_parts(parts, body.boxed_unsync()))
        })
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the scenario interrupts this connection")
}

/// What the member answers to a write that it forbids.
fn refusal<B>(state: &LinkState, request: &Request<B>) -> Option<Reply> {
    let resource = state.forbids(request.method(), request.uri().path())?;
    let message = format!("{resource} is forbidden: the scenario refuses writes to this cluster");
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "Forbidden", "code": 403});
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::FORBIDDEN;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Some(response)
}

/// A response that breaks off when the connection falls silent.
struct LinkBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    clock: Arc<Clock>,
    change: Option<Pin<Box<Sleep>>>,
}

impl LinkBody {
    fn new(inner: UnsyncBoxBody<Bytes, BoxError>, clock: Arc<Clock>) -> Self {
        let change = clock.next_change().map(|at| Box::pin(sleep_until(at)));
        Self { inner, clock, change }
    }
}

impl http_body::Body for LinkBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while let Some(change) = &mut self.change {
            if change.as_mut().poll(context).is_pending() {
                break;
            }
            if self.clock.state().is_silent {
                return Poll::Ready(Some(Err(broken().into())));
            }
            self.change = self.clock.next_change().map(|at| Box::pin(sleep_until(at)));
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
