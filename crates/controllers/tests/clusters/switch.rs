//! The connection to a cluster, which can be silenced: requests are then never answered.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use convoy_apiserver::transport::Transport;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower_service::Service;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Switch {
    pub(crate) transport: Transport,
    pub(crate) is_silent: Arc<AtomicBool>,
}

impl<B> Service<Request<B>> for Switch
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
        if self.is_silent.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        let response = Service::call(&mut self.transport, request);
        Box::pin(async move {
            let response = response.await?;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}
