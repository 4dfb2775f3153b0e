//! Answers admission and conversion reviews over TLS. The other objects that a webhook needs are read from the
//! API server for each review, so that a policy counts from the moment it is stored.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use convoy_api::Object;
use convoy_plan::admission::{
    Circumstances, NeededRight, Served, Webhook, access_review, answer, rights,
};
use convoy_plan::conversion::{self, Conversion};
use convoy_plan::{Dialect, World};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::transport;

/// An admission review carries an object twice, each of at most 3 MiB.
const REVIEW_BYTES_MAX: usize = 8 << 20;
/// The time limit of a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

pub(super) struct Server {
    client: Client,
    webhooks: Vec<(&'static dyn Dialect, &'static Webhook)>,
    conversions: Vec<(&'static dyn Dialect, &'static Conversion)>,
}

/// Why a review could not be answered; the API server then rejects the request.
enum Failure {
    NotServed,
    NoReview(String),
    /// Objects that the webhook needs could not be read.
    Unread(String),
}

impl Server {
    pub(super) fn new(client: Client, dialects: &[&'static dyn Dialect]) -> Self {
        let of_dialect = |dialect: &&'static dyn Dialect| {
            let dialect = *dialect;
            dialect.webhooks().iter().map(move |webhook| (dialect, webhook))
        };
        let conversions = |dialect: &&'static dyn Dialect| {
            let dialect = *dialect;
            dialect.conversions().iter().map(move |conversion| (dialect, conversion))
        };
        Self {
            client,
            webhooks: dialects.iter().flat_map(of_dialect).collect(),
            conversions: dialects.iter().flat_map(conversions).collect(),
        }
    }

    /// Serves every new connection with the newest of `configs`, until the last sender is gone.
    pub(super) async fn run(
        self,
        listener: TcpListener,
        configs: watch::Receiver<Arc<rustls::ServerConfig>>,
    ) {
        let server = Arc::new(self);
        while configs.has_changed().is_ok() {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of file descriptors; retry once some are closed.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let acceptor = TlsAcceptor::from(Arc::clone(&configs.borrow()));
            tokio::spawn(Arc::clone(&server).connection(acceptor, stream));
        }
    }

    async fn connection(self: Arc<Self>, acceptor: TlsAcceptor, stream: TcpStream) {
        let agreed = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await;
        let stream = match agreed {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!("a TLS handshake timed out"),
        };
        let service = service_fn(|request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        });
        let mut http = http1::Builder::new();
        let connection =
            http.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
        if let Err(error) = connection.await {
            tracing::trace!(%error, "a connection failed");
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (code, kind, text) = match self.answer(request).await {
            Ok(answer) => (StatusCode::OK, "application/json", answer.to_string()),
            Err(failure) => {
                let (code, text) = failure.response();
                (code, "text/plain; charset=utf-8", text)
            }
        };
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = code;
        let kind = http::HeaderValue::from_static(kind);
        response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
        response
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Value, Failure> {
        if request.method() != Method::POST {
            return Err(Failure::NotServed);
        }
        let path = request.uri().path().to_owned();
        let mut conversions = self.conversions.iter();
        if let Some((dialect, _)) = conversions.find(|(_, conversion)| conversion.path == path) {
            let answer = conversion::answer(*dialect, &review(request).await?);
            let malformed = "it has no request with a uid, a version and objects";
            return answer.ok_or_else(|| Failure::NoReview(malformed.to_owned()));
        }
        let mut all = self.webhooks.iter();
        let found = all.find(|(_, webhook)| webhook.path == path);
        let (dialect, webhook) = found.ok_or(Failure::NotServed)?;
        let review = review(request).await?;
        let mut world = World::new();
        for served in webhook.beside {
            self.read(served, &mut world).await.map_err(Failure::Unread)?;
        }
        let mut denied = Vec::new();
        for right in rights(*dialect, webhook, &review) {
            if !self.may(&right, &review).await.map_err(Failure::Unread)? {
                denied.push(right);
            }
        }
        let circumstances = Circumstances { now: Timestamp::now(), denied: &denied };
        let answer = answer(*dialect, webhook, &world, &review, circumstances)
            .ok_or_else(|| Failure::NoReview("it has no request with a uid".to_owned()))?;
        if answer["response"]["allowed"] == false {
            let why = answer["response"]["status"]["message"].as_str().unwrap_or_default();
            tracing::info!(webhook = webhook.name, why, "admission denied");
        }
        Ok(answer)
    }

    /// Asks the API server whether the user of a review has a right.
    async fn may(&self, right: &NeededRight, review: &Value) -> Result<bool, String> {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let asked = access_review(right, review);
        let response = transport::ask(&self.client, path, asked).await;
        let response = response.map_err(|error| format!("{path}: {}", transport::chain(&error)))?;
        if !response.is_success() {
            return Err(format!("{path}: {}", response.message()));
        }
        Ok(response.body["status"]["allowed"] == true)
    }

    /// Puts all objects of a kind into `world`; a kind that is not served has none.
    async fn read(&self, served: &Served, world: &mut World) -> Result<(), String> {
        let (group, kind) = (&served.kind.group, &served.kind.kind);
        let (version, plural) = (served.version, served.plural);
        let path = match group.as_str() {
            "" => format!("/api/{version}/{plural}"),
            group => format!("/apis/{group}/{version}/{plural}"),
        };
        let response = transport::read(&self.client, path.as_str()).await;
        let mut response =
            response.map_err(|error| format!("{path}: {}", transport::chain(&error)))?;
        if response.code == 404 {
            return Ok(());
        }
        if !response.is_success() {
            return Err(format!("{path}: {}", response.message()));
        }
        let Value::Array(items) = response.body["items"].take() else {
            return Err(format!("{path}: the response is not a list"));
        };
        for mut item in items {
            let slash = if group.is_empty() { "" } else { "/" };
            item["apiVersion"] = json!(format!("{group}{slash}{version}"));
            item["kind"] = json!(kind);
            let object = Object::from_value(item).map_err(|error| {
                format!("{path}: an object is malformed: {}: {}", error.field, error.message)
            })?;
            world.insert(object);
        }
        Ok(())
    }
}

/// The review that a request carries.
async fn review(request: Request<Incoming>) -> Result<Value, Failure> {
    let body = Limited::new(request.into_body(), REVIEW_BYTES_MAX).collect().await;
    let body = body.map_err(|error| Failure::NoReview(error.to_string()))?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| Failure::NoReview(error.to_string()))
}

impl Failure {
    fn response(self) -> (StatusCode, String) {
        match self {
            Self::NotServed => (StatusCode::NOT_FOUND, "no such webhook".to_owned()),
            Self::NoReview(why) => (StatusCode::BAD_REQUEST, format!("not a review: {why}")),
            Self::Unread(why) => {
                tracing::warn!(why, "a webhook could not read the objects it needs");
                (StatusCode::INTERNAL_SERVER_ERROR, format!("could not read {why}"))
            }
        }
    }
}
