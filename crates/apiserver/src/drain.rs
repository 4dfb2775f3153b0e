//! Requests that are being answered: an end waits for them, and for nothing else.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use tokio::sync::watch;

use crate::body::Body;

/// Counts requests from their head to the end of their answer. Cloning shares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drain(Arc<watch::Sender<usize>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct DrainGuard(Drain);

/// The body of an answer that is counted until it is sent.
#[derive(Debug)]
pub(crate) struct Counted {
    body: Body,
    _guard: Option<DrainGuard>,
}

impl Drain {
    pub(crate) fn enter(&self) -> DrainGuard {
        self.0.send_modify(|count| *count += 1);
        DrainGuard(self.clone())
    }

    /// Done when nothing is being answered.
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
    /// Goes along with an answer. A watch is not waited for: it is ended.
    pub(crate) fn attach_to(self, response: Response<Body>) -> Response<Counted> {
        response.map(|body| {
            let guard = (!matches!(body, Body::Watch(_))).then_some(self);
            Counted { body, _guard: guard }
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
