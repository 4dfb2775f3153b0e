//! What slow clients cost the others.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};

use super::handle;
use crate::access::{Access, Authorization, Peer, Signer, TokenFile};
use crate::caller::Caller;
use crate::server::{Limits, Server};
use crate::testing::TestServer;

/// A server that allows everything, to somebody who is no administrator.
fn world(limits: Limits) -> (TestServer, Peer) {
    let signer = Signer::generate().unwrap();
    let access = Access::new(Authorization::AlwaysAllow, TokenFile::default(), signer);
    let test = TestServer::limited(limits).with_access(access);
    let bob = Caller { name: "bob".to_owned(), ..Caller::default() };
    (test, Peer { certificate: Some(bob), ..Peer::default() })
}

fn post<B>(body: B) -> Request<B> {
    let request = Request::post("/api/v1/namespaces").header("content-type", "application/json");
    request.body(body).unwrap()
}

fn named(name: &str) -> Request<Full<Bytes>> {
    post(Full::new(json!({"metadata": {"name": name}}).to_string().into()))
}

/// A request of which a few bytes have come, and no more will.
fn slow(
    begins: &str,
) -> Request<impl http_body::Body<Data = Bytes, Error = Infallible> + Send + use<>> {
    use futures_util::StreamExt;
    let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(begins.to_owned())));
    let frames = futures_util::stream::iter([frame]).chain(futures_util::stream::pending());
    post(StreamBody::new(frames))
}

#[test]
fn slow_bodies_keep_nobody_out() {
    let (test, bob) = world(Limits { writes_in_flight_max: 1, ..Limits::default() });
    test.run(async {
        let mut slow: Vec<_> = (0..5).map(|_| handle(&test.server, slow("{"), &bob)).collect();
        for one in &mut slow {
            assert!(futures_util::poll!(one).is_pending());
        }
        assert_eq!(handle(&test.server, named("a"), &bob).await.status(), 201);
    });
}

#[test]
fn a_write_stops_when_its_request_is_over() {
    let (test, bob) = world(Limits::default());
    test.run(async {
        let mut given_up = Box::pin(handle(&test.server, named("a"), &bob));
        assert!(futures_util::poll!(&mut given_up).is_pending(), "it is between two steps");
        drop(given_up);
    });
    assert_eq!(test.call("GET", "/api/v1/namespaces/a", &Value::Null).0, 404);
}

#[test]
fn bodies_that_are_being_read_have_a_bound() {
    let (test, bob) = world(Limits { bodies_bytes_max: 256 << 10, ..Limits::default() });
    test.run(async {
        let half = " ".repeat(40 << 10);
        let mut slow = handle(&test.server, slow(&half), &bob);
        assert!(futures_util::poll!(&mut slow).is_pending());
        let refused = handle(&test.server, named("a"), &bob).await;
        assert_eq!(refused.status(), 429, "56 of 64 KiB are taken, and it needs 16");
        let ann = Caller { name: "ann".to_owned(), ..Caller::default() };
        let ann = Peer { certificate: Some(ann), ..Peer::default() };
        assert_eq!(handle(&test.server, named("a"), &ann).await.status(), 201);
        drop(slow);
        assert_eq!(handle(&test.server, named("b"), &bob).await.status(), 201);
    });
}

async fn watch(server: &Arc<Server>, peer: &Peer) -> crate::body::Body {
    let path = "/api/v1/namespaces?watch=1";
    let request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
    let response = handle(server, request, peer).await;
    assert_eq!(response.status(), 200);
    response.into_body()
}

async fn next(body: &mut crate::body::Body) -> Option<Value> {
    let frame = body.frame().await?.unwrap().into_data().unwrap();
    Some(serde_json::from_slice(&frame).unwrap())
}

#[test]
fn watches_that_are_not_read_expire() {
    let (test, bob) = world(Limits { watch_bytes_max: 1 << 20, ..Limits::default() });
    test.create("/api/v1/namespaces", &json!({"metadata": {"name": "a"}}));
    test.run(async {
        let mut watches = Vec::new();
        for _ in 0..20 {
            let mut one = watch(&test.server, &bob).await;
            // Its client takes the first text, and asks for no more.
            assert_eq!(next(&mut one).await.unwrap()["type"], "ADDED");
            watches.push(one);
        }
        let mut first = watches.remove(0);
        let error = next(&mut first).await.unwrap();
        assert_eq!(error["type"], "ERROR");
        assert_eq!(error["object"]["code"], 410);
        assert_eq!(error["object"]["reason"], "Expired");
        assert_eq!(next(&mut first).await, None);
        let mut last = watches.pop().unwrap();
        assert!(futures_util::poll!(std::pin::pin!(next(&mut last))).is_pending());
    });
}

#[test]
fn a_large_event_is_sent_in_pieces() {
    let (test, bob) = world(Limits::default());
    let large = "x".repeat(200 << 10);
    let annotations = json!({"note": large});
    test.create(
        "/api/v1/namespaces",
        &json!({"metadata": {"name": "a", "annotations": annotations}}),
    );
    test.run(async {
        let mut body = watch(&test.server, &bob).await;
        let (mut text, mut pieces) = (Vec::new(), Vec::new());
        while text.last() != Some(&b'\n') {
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            pieces.push(piece.len());
            text.extend_from_slice(&piece);
        }
        let event: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(event["object"]["metadata"]["annotations"], annotations);
        assert_eq!(pieces.len(), 4);
        assert!(pieces.iter().all(|length| *length <= 64 << 10), "{pieces:?}");
    });
}
