//! From an HTTP request to its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::time::Instant as Deadline;

use crate::accept::Accept;
use crate::access::{self, Peer};
use crate::ask::Ask;
use crate::audit::{self, Log};
use crate::body::Body;
use crate::caller::Caller;
use crate::compress::compress;
use crate::convert::webhook;
use crate::paths;
use crate::query::Query;
use crate::reply::{Reply, add_warnings, refusal};
use crate::request::{Attributes, Target};
use crate::server::{Cluster, Server};
use crate::status::{Answer, Status};
use crate::subresource;
use crate::traffic;
use crate::verb;

const ENDPOINTS: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Answers one request. Whatever goes wrong is an answer too.
pub async fn handle<B>(server: &Arc<Server>, request: Request<B>, peer: &Peer) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let audit_id = request.headers().get(AUDIT_ID).cloned().unwrap_or_else(|| {
        let id = crate::surroundings::new_uid(&*server.surroundings);
        HeaderValue::try_from(id).expect("a uid is plain text")
    });
    let accept = accept_header(request.headers());
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let pretty = Accept { pretty: wants_pretty(&query, request.headers()), ..Accept::default() };
    let uri = request.uri().to_string();
    let agent = header(request.headers(), &USER_AGENT);
    let mut log = Log::new(audit::Request {
        id: audit_id.to_str().unwrap_or_default(),
        uri: &uri,
        user_agent: &agent,
        address: &peer.address,
        received: server.now(),
    });
    let begun = Instant::now();
    let path = percent_encoding::percent_decode_str(request.uri().path()).decode_utf8_lossy();
    let attributes = Attributes::read(request.method().as_str(), &path, &query);
    let in_flight = server.metrics.begin(traffic::mutates(&attributes));
    let headers = request.headers().clone();
    let answered = answer(server, request, &attributes, &query, peer, &accept, &mut log);
    // A defect costs one answer, not the server.
    let answered = AssertUnwindSafe(answered).catch_unwind().await;
    let has_panicked = answered.is_err();
    let answered = answered.unwrap_or_else(|_| {
        tracing::error!(%uri, "a request ended in a panic");
        Err(Status::internal("the server could not finish the request"))
    });
    let mut response = match answered {
        Ok(response) => response,
        Err(status) => refusal(&status, pretty),
    };
    drop(in_flight);
    let dry_run = query.get("dryRun").is_some();
    server.metrics.answered(&attributes, dry_run, response.status().as_u16(), begun.elapsed());
    if has_panicked {
        log.panicked(server.now());
    } else {
        log.answered(&mut response, &server.surroundings);
    }
    let mut response = compress(&headers, response);
    response.headers_mut().insert(AUDIT_ID, audit_id);
    response
}

async fn answer<B>(
    server: &Arc<Server>,
    request: Request<B>,
    attributes: &Attributes,
    query: &Query,
    peer: &Peer,
    accept: &str,
    log: &mut Log<'_>,
) -> Answer<Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let cluster = server.cluster(&attributes.cluster);
    let cluster = cluster.ok_or_else(Status::no_such_route)?;
    let caller = access::admit(server, &cluster, peer, &parts.headers, attributes, log)?;
    let Some(target) = attributes.target.clone() else {
        return paths::answer(server, &cluster, attributes, query, accept, &parts.headers);
    };
    let _place = server.traffic.enter(attributes, &caller)?;
    let ends = traffic::timeout(attributes, query).map(|limit| Deadline::now() + limit);
    let body = within(ends, read_body(body, server.limits.body_bytes_max)).await?;
    log.request_body(&body);
    let mut ask = ask(server, cluster, &attributes.verb, target, query.clone(), caller)?;
    ask.accept = Accept::read(accept, false)?;
    ask.accept.pretty |= wants_pretty(&ask.query, &parts.headers);
    ask.user_agent = header(&parts.headers, &USER_AGENT);
    ask.content_type = header(&parts.headers, &CONTENT_TYPE);
    ask.body = body;
    ask.check_verb()?;
    let custom = ask.resource.custom.as_ref();
    if let Some(warning) = custom.and_then(|custom| custom.deprecation_warning.as_ref()) {
        ask.warn(warning);
    }
    if ask.resource.is("", "endpoints") {
        ask.warn(ENDPOINTS);
    }
    within(ends, carry_out(ask)).await
}

/// What comes of some work, if it is done in time.
async fn within<T>(ends: Option<Deadline>, work: impl Future<Output = Answer<T>>) -> Answer<T> {
    let Some(ends) = ends else { return work.await };
    tokio::time::timeout_at(ends, work).await.unwrap_or_else(|_| {
        let message = "request did not complete within the allotted timeout";
        Err(Status::timeout(format!("Timeout: {message}")))
    })
}

fn ask(
    server: &Arc<Server>,
    cluster: Arc<Cluster>,
    verb: &SmolStr,
    target: Target,
    query: Query,
    caller: Caller,
) -> Answer<Ask> {
    let registry = cluster.registry();
    let resource = registry.get(&target.group, &target.version, &target.resource);
    let resource = Arc::clone(resource.ok_or_else(Status::no_such_route)?);
    let is_namespaced_path = !target.namespace.is_empty() && !resource.is("", "namespaces");
    if is_namespaced_path && !resource.namespaced {
        return Err(Status::no_such_route());
    }
    let verb = verb.clone();
    // A name that a selector pins counts for access, not as the name in the path.
    let mut target = target;
    if matches!(verb.as_str(), "list" | "watch" | "deletecollection") {
        target.name = SmolStr::default();
    }
    let needs_place = resource.namespaced && target.namespace.is_empty();
    if needs_place && !matches!(verb.as_str(), "list" | "watch") {
        return Err(Status::method_not_allowed());
    }
    Ok(Ask {
        server: Arc::clone(server),
        cluster,
        registry,
        resource,
        verb,
        target,
        query,
        accept: Accept::default(),
        caller,
        user_agent: String::new(),
        content_type: String::new(),
        body: Bytes::new(),
        warnings: Mutex::default(),
        annotations: Mutex::default(),
        converted: Mutex::default(),
    })
}

async fn carry_out(ask: Ask) -> Answer<Response<Body>> {
    // A watch keeps the request as long as it lasts.
    if ask.verb == "watch" {
        return match verb::watch::watch(ask).await? {
            Reply::Raw(response) => Ok(response),
            other => unreachable!("a watch is answered as a stream, not as {other:?}"),
        };
    }
    let reply = if let Some(reply) = subresource::read(&ask) {
        reply
    } else if ask.target.subresource.is_empty() || ask.target.subresource == "status" {
        match ask.verb.as_str() {
            "get" => verb::get::get(&ask).await,
            "list" => verb::list::list(&ask).await,
            "create" => subresource::create(&ask).await,
            "update" => verb::update::update(&ask).await,
            "patch" => verb::patch::patch(&ask).await,
            "delete" => verb::delete::delete(&ask).await,
            "deletecollection" => verb::delete::delete_collection(&ask).await,
            _ => Err(Status::method_not_allowed()),
        }
    } else {
        subresource::carry_out(&ask).await
    };
    let reply = match reply {
        Ok(Reply::Entry(code, entry)) => {
            let ready = webhook::prepare(&ask, std::slice::from_ref(&entry)).await;
            ready.map(|()| Reply::Entry(code, entry))
        }
        other => other,
    };
    let warnings = ask.take_warnings();
    let mut response = match reply.and_then(|reply| reply.respond(&ask)) {
        Ok(response) => response,
        Err(status) => refusal(&status, ask.accept),
    };
    add_warnings(&mut response, warnings);
    let notes = std::mem::take(&mut *ask.annotations.lock());
    if !notes.is_empty() {
        response.extensions_mut().insert(audit::Notes(notes));
    }
    Ok(response)
}

async fn read_body<B>(body: B, limit: usize) -> Answer<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Status::too_large(limit)),
        Err(error) => Err(Status::bad_request(format!("the body ended early: {error}"))),
    }
}

fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn accept_header(headers: &HeaderMap) -> String {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

/// People at a terminal or in a browser get lines they can read.
pub(crate) fn wants_pretty(query: &Query, headers: &HeaderMap) -> bool {
    let agent = header(headers, &USER_AGENT);
    let by_people = ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name));
    query.optional_flag("pretty").unwrap_or(by_people)
}
