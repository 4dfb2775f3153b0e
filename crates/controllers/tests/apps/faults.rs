//! Writes that meet conflicts and failures.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use convoy_apiserver::transport::Transport;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::Client;
use serde_json::json;
use tower_service::Service;

use crate::cluster::{Cluster, both, is_ready, start};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Answers every other write without carrying it out: with a conflict, a plea for patience, or
/// a failure.
#[derive(Clone)]
struct Faulty {
    inner: Transport,
    writes: Arc<AtomicUsize>,
}

impl<B> Service<Request<B>> for Faulty
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
        let is_write = request.method() != Method::GET && !request.uri().path().contains("/events");
        let number = if is_write { self.writes.fetch_add(1, Ordering::Relaxed) } else { 0 };
        if number % 2 == 1 {
            let code = [409, 429, 500][number / 2 % 3];
            let text = json!({"kind": "Status", "code": code, "message": "a fault"}).to_string();
            let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
            let response = Response::builder().status(code).body(body.boxed_unsync()).unwrap();
            return Box::pin(async move { Ok(response) });
        }
        let answer = Service::call(&mut self.inner, request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}

#[tokio::test]
async fn a_rollout_ends_though_every_other_write_fails() {
    let cluster = Cluster::new().await;
    let inner = Transport::trusted(&cluster.server, "");
    let writes = Arc::new(AtomicUsize::new(0));
    let client = Client::new(Faulty { inner, writes: Arc::clone(&writes) }, "default");
    let settings = both();
    let metrics = Arc::clone(&settings.metrics);
    let running = start(&client, settings);
    cluster.create(4).await;
    cluster.roll(|_, _| {}).await;
    cluster.set_image("web:v2").await;
    cluster
        .roll(|asked_for, pods| {
            assert!(pods.iter().filter(|pod| is_ready(pod)).count() >= 3);
            assert!(asked_for <= 5, "{asked_for} of 4 with one in surplus");
        })
        .await;
    cluster.rest().await;
    assert_eq!(cluster.live_pods().await.len(), 4);
    running.end().await;
    let text = metrics.text();
    for code in [409, 429, 500] {
        assert!(text.contains(&format!("code=\"{code}\"")), "{text}");
    }
    assert!(!text.contains("convoy_conflicts_total 0"), "{text}");
}

#[tokio::test]
async fn someone_else_writing_the_same_objects_is_planned_around() {
    let cluster = Cluster::new().await;
    let running = start(&cluster.client, both());
    cluster.create(3).await;
    let meddling = async {
        for number in 0..200 {
            let annotations = json!({"touched": number.to_string()});
            cluster.patch(json!({"metadata": {"annotations": annotations}})).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(meddling, cluster.roll(|_, _| {}));
    cluster.roll(|_, _| {}).await;
    assert_eq!(cluster.live_pods().await.len(), 3);
    running.end().await;
}
