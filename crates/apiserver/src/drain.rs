//! Counts requests in flight, so that a graceful shutdown waits for them and for nothing else.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use tokio::sync::watch;

use crate::body::Body;
use crate::connections::Busy;

/// Counts requests from their first byte to the end of their response. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drain(Arc<watch::Sender<usize>>);

/// Counts one request until it is dropped.
#[derive(Debug)]
pub(crate) struct DrainGuard(Drain);

/// A response body whose request is counted until the body is sent.
#[derive(Debug)]
pub(crate) struct Counted {
    body: Body,
    _guard: Option<DrainGuard>,
    /// The connection has a request in flight, be it a watch.
    _busy: Busy,
}

impl Drain {
    pub(crate) fn enter(&self) -> DrainGuard {
        self.0.send_modify(|count| *count += 1);
        DrainGuard(self.clone())
    }

    /// Completes when no request is in flight.
    pub(crate) async fn idle(&self) {
        // The sender is held here, so the channel is open.
        drop(self.0.subscribe().wait_for(|count| *count == 0).await);
    }
}

impl Drop for DrainGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl DrainGuard {
    /// Keeps the request counted until the response is sent. Watches are not counted: a shutdown
    /// ends them.
    pub(crate) fn attach_to(self, response: Response<Body>, busy: Busy) -> Response<Counted> {
        response.map(|body| {
            let guard = (!matches!(body, Body::Watch(_))).then_some(self);
            Counted { body, _guard: guard, _busy: busy }
        })
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
