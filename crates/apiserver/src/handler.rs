//! Handles an HTTP request: reads it, checks access, calls the handler of its verb, responds.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use smol_str::SmolStr;
use tokio::time::Instant as Deadline;

use crate::accept::{Accept, wants_pretty};
use crate::access::Peer;
use crate::audit::{self, Log};
use crate::bodies::HeldBody;
use crate::body::Body;
use crate::caller::Caller;
use crate::compress::compress;
use crate::conversion;
use crate::findings::Findings;
use crate::handler_response::HandlerResponse;
use crate::kinds::{self, NewObject};
use crate::paths;
use crate::query::Query;
use crate::redact;
use crate::request_info::{RequestInfo, Target, Verb};
use crate::resource_request::ResourceRequest;
use crate::response::{add_warnings, refusal};
use crate::server::{Cluster, Server};
use crate::status::{ApiResult, Status};
use crate::subresource;
use crate::traffic;
use crate::verb;

/// How long the body of a long-running request may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The body of a request, wherever it comes from.
type RequestBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Handles one request. Every failure becomes a response with a `Status`.
pub fn handle<'a, B>(
    server: &'a Arc<Server>,
    request: Request<B>,
    peer: &'a Peer,
) -> BoxFuture<'a, Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    start(server, request, peer)
}

/// What every crate that serves requests shares: as it is not generic, it is compiled here once.
#[inline(never)]
fn start<'a>(
    server: &'a Arc<Server>,
    request: Request<RequestBody>,
    peer: &'a Peer,
) -> BoxFuture<'a, Response<Body>> {
    Box::pin(observe(server, request, peer))
}

/// Responds to a request, and records it in the audit log and the metrics.
async fn observe(
    server: &Arc<Server>,
    request: Request<RequestBody>,
    peer: &Peer,
) -> Response<Body> {
    let audit_id = request.headers().get(AUDIT_ID).cloned().unwrap_or_else(|| {
        let id = crate::surroundings::new_uid(&*server.surroundings);
        HeaderValue::try_from(id).expect("a uid is plain text")
    });
    let accept = accept_header(request.headers());
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let pretty = Accept { pretty: wants_pretty(&query, request.headers()), ..Accept::default() };
    let uri = redact::uri(request.uri());
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
    let info = RequestInfo::read(request.method().as_str(), &path, &query);
    let in_flight = server.metrics.begin(traffic::mutates(&info));
    let headers = request.headers().clone();
    let handled = respond(server, request, &info, &query, peer, &accept, &mut log);
    // A panic fails one request, not the server.
    let handled = AssertUnwindSafe(handled).catch_unwind().await;
    let has_panicked = handled.is_err();
    let handled = handled.unwrap_or_else(|_| {
        tracing::error!(%uri, "request handler panicked");
        Err(Status::internal("the server could not finish the request"))
    });
    let mut response = match handled {
        Ok(response) => response,
        Err(status) => refusal(&status, pretty),
    };
    drop(in_flight);
    let dry_run = query.get("dryRun").is_some();
    server.metrics.answered(&info, dry_run, response.status().as_u16(), begun.elapsed());
    if has_panicked {
        log.panicked(server.now());
    } else {
        log.answered(&mut response, &server.surroundings);
    }
    let mut response = compress(&headers, response);
    response.headers_mut().insert(AUDIT_ID, audit_id);
    response
}

async fn respond(
    server: &Arc<Server>,
    request: Request<RequestBody>,
    info: &RequestInfo,
    query: &Query,
    peer: &Peer,
    accept: &str,
    log: &mut Log<'_>,
) -> ApiResult<Response<Body>> {
    let (parts, body) = request.into_parts();
    let cluster = server.cluster(&info.cluster);
    let cluster = cluster.ok_or_else(Status::no_such_route)?;
    let limit = traffic::timeout(info, query).inspect_err(|_| {
        // Refused before anybody asks who calls.
        log.open(server.access.audit.as_ref(), &Caller::default(), info);
    })?;
    let caller = server.guard(&cluster).admit(peer, &parts.headers, info, log)?;
    let Some(target) = info.target.clone() else {
        return paths::serve(server, &cluster, info, query, accept, &parts.headers);
    };
    let begun = Deadline::now();
    let ends = limit.map(|limit| begun + limit);
    // A body that comes slowly must not take a place from those who work.
    let (limit, arrives) = (server.limits.body_bytes_max, ends.unwrap_or(begun + BODY_TIMEOUT));
    let mut held = server.bodies.hold(&caller);
    let body = within(Some(arrives), read_body(body, limit, &mut held)).await?;
    let _permit = server.traffic.enter(info, &caller)?;
    log.request_body(&body);
    let asked = Asked { verb: &info.verb, target, query, accept, headers: &parts.headers };
    let request = resource_request(server, cluster, asked, caller, body)?;
    request.check_verb()?;
    let custom = request.resource.custom.as_ref();
    if let Some(warning) = custom.and_then(|custom| custom.deprecation_warning.as_ref()) {
        request.warn(warning);
    }
    if let Some(deprecation) = kinds::of(&request.resource).deprecation() {
        request.warn(deprecation);
    }
    within(ends, carry_out(request)).await
}

/// Runs `work` until the request times out.
async fn within<T>(
    ends: Option<Deadline>,
    work: impl Future<Output = ApiResult<T>>,
) -> ApiResult<T> {
    let Some(ends) = ends else { return work.await };
    tokio::time::timeout_at(ends, work).await.unwrap_or_else(|_| {
        let message = "request did not complete within the allotted timeout";
        Err(Status::timeout(format!("Timeout: {message}")))
    })
}

/// What a client asks, as it was sent.
struct Asked<'r> {
    verb: &'r Verb,
    target: Target,
    query: &'r Query,
    accept: &'r str,
    headers: &'r HeaderMap,
}

fn resource_request(
    server: &Arc<Server>,
    cluster: Arc<Cluster>,
    asked: Asked<'_>,
    caller: Caller,
    body: Bytes,
) -> ApiResult<ResourceRequest> {
    let Asked { verb, mut target, query, accept, headers } = asked;
    let registry = cluster.registry();
    let resource = registry.get(&target.group, &target.version, &target.resource);
    let resource = Arc::clone(resource.ok_or_else(Status::no_such_route)?);
    let is_namespaced_path = !target.namespace.is_empty() && !kinds::of(&resource).is_namespace();
    if is_namespaced_path && !resource.namespaced {
        return Err(Status::no_such_route());
    }
    // A name that a selector pins counts for access, not as the name in the path.
    if verb.is_of_many() {
        target.name = SmolStr::default();
    }
    let needs_namespace = resource.namespaced && target.namespace.is_empty();
    if needs_namespace && !matches!(verb, Verb::List | Verb::Watch) {
        return Err(Status::method_not_allowed());
    }
    let mut accept = Accept::read(accept, false)?;
    accept.pretty |= wants_pretty(query, headers);
    Ok(ResourceRequest {
        server: Arc::clone(server),
        cluster,
        registry,
        resource,
        verb: verb.clone(),
        target,
        query: query.clone(),
        accept,
        caller,
        user_agent: header(headers, &USER_AGENT),
        content_type: header(headers, &CONTENT_TYPE),
        body,
        findings: Findings::default(),
    })
}

async fn carry_out(request: ResourceRequest) -> ApiResult<Response<Body>> {
    // A watch keeps the request as long as it lasts.
    if request.verb == Verb::Watch {
        return match verb::watch::watch(request).await? {
            HandlerResponse::Raw(response) => Ok(response),
            other => unreachable!("a watch is answered as a stream, not as {other:?}"),
        };
    }
    let handled = match request.target.subresource.as_str() {
        "" | "status" => handle_verb(&request).await,
        _ => subresource::carry_out(&request).await,
    };
    let handled = match handled {
        Ok(HandlerResponse::Entry(code, entry)) => {
            let ready = conversion::prepare(&request, std::slice::from_ref(&entry)).await;
            ready.map(|()| HandlerResponse::Entry(code, entry))
        }
        other => other,
    };
    let mut response = match handled.and_then(|handled| handled.respond(&request)) {
        Ok(response) => response,
        Err(status) => refusal(&status, request.accept),
    };
    // Showing an object may add some.
    add_warnings(&mut response, request.findings.take_warnings());
    let notes = request.findings.take_annotations();
    if !notes.is_empty() {
        response.extensions_mut().insert(audit::Notes(notes));
    }
    Ok(response)
}

/// A request on a resource itself.
async fn handle_verb(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let is_made_up = kinds::of(&request.resource).is_made_up();
    match request.verb {
        Verb::Get if is_made_up => subresource::component::get(request),
        Verb::List if is_made_up => Ok(subresource::component::list(request)),
        Verb::Get => verb::get::get(request).await,
        Verb::List => verb::list::list(request).await,
        Verb::Create => create(request).await,
        Verb::Update => verb::update::update(request).await,
        Verb::Patch => verb::patch::patch(request).await,
        Verb::Delete => verb::delete::delete(request).await,
        Verb::DeleteCollection => verb::delete::delete_collection(request).await,
        Verb::Watch | Verb::Proxy | Verb::Method(_) => Err(Status::method_not_allowed()),
    }
}

/// A create on a resource: for most kinds a new object, for some an action.
async fn create(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    match kinds::of(&request.resource).use_of_new() {
        NewObject::Stored => verb::create::create(request).await,
        NewObject::Question(question) => subresource::review::answer(request, question),
        NewObject::Binding => subresource::binding::create(request).await,
    }
}

async fn read_body(body: RequestBody, limit: usize, held: &mut HeldBody<'_>) -> ApiResult<Bytes> {
    let mut body = std::pin::pin!(Limited::new(body, limit));
    if http_body::Body::is_end_stream(&*body) {
        return Ok(Bytes::new());
    }
    held.begin()?;
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return Status::too_large(limit);
            }
            Status::bad_request(format!("the body ended early: {error}"))
        })?;
        if let Ok(data) = frame.into_data() {
            held.grow(data.len())?;
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.freeze())
}

fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn accept_header(headers: &HeaderMap) -> String {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
