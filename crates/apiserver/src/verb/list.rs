//! Lists: consistent at one revision, paged, narrowed by selectors.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use convoy_api::schema::{FieldError, Reason};
use convoy_store::Revision;
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::accept::{Accept, Form};
use crate::body::{Body, ListBody};
use crate::conversion;
use crate::decode::go_json;
use crate::handler_response::HandlerResponse;
use crate::object_meta::{Entry, Snapshot};
use crate::resource_request::ResourceRequest;
use crate::response::{encoded, partial, with_media};
use crate::selection::Selection;
use crate::status::{ApiResult, Status};
use crate::table;

use super::get::{read_revision, wait_for};

/// What one page holds.
#[derive(Debug)]
pub struct Page {
    pub revision: Revision,
    pub entries: Vec<Arc<Entry>>,
    /// Where the next page begins, if there is one.
    next: Option<String>,
    remaining: Option<usize>,
}

pub async fn list(request: &ResourceRequest) -> ApiResult<HandlerResponse> {
    let page = page(request).await?;
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), json!(page.revision.0.to_string()));
    if let Some(next) = &page.next {
        metadata.insert("continue".into(), json!(next));
    } else if request.resource.custom.is_some() && request.accept.form == Form::Object {
        metadata.insert("continue".into(), json!(""));
    }
    if let Some(remaining) = page.remaining {
        metadata.insert("remainingItemCount".into(), json!(remaining));
    }
    let bytes = page.entries.iter().map(|entry| entry.value.len()).sum();
    let permit = request.server.traffic.list(bytes, &request.caller).await;
    conversion::prepare(request, &page.entries).await?;
    let all_plain = || page.entries.iter().all(|entry| request.shows_as_stored(entry));
    if request.accept == Accept::default() && all_plain() {
        return Ok(HandlerResponse::Raw(streamed(request, &metadata, page.entries, permit)));
    }
    let objects: Vec<Value> = page.entries.iter().map(|entry| request.read(entry)).collect();
    let list = match request.accept.form {
        Form::Table => {
            let mut table = table::of(request, &objects, true)?;
            table["metadata"] = Value::Object(metadata);
            table
        }
        Form::Metadata => json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata, "items": objects.iter().map(partial).collect::<Vec<_>>(),
        }),
        Form::Object | Form::GroupDiscovery => whole(request, metadata, objects),
    };
    Ok(HandlerResponse::Raw(encoded(200, &list, request.accept)))
}

fn streamed(
    request: &ResourceRequest,
    metadata: &Map<String, Value>,
    entries: Vec<Arc<Entry>>,
    permit: Option<OwnedSemaphorePermit>,
) -> http::Response<Body> {
    let resource = &request.resource;
    let (kind, api_version) = (json!(resource.list_kind), json!(resource.api_version()));
    let metadata = Value::Object(metadata.clone());
    let is_custom = resource.custom.is_some();
    let opening = if is_custom {
        format!(
            "{{\"apiVersion\":{api_version},\"kind\":{kind},\"metadata\":{metadata},\"items\":["
        )
    } else {
        format!(
            "{{\"kind\":{kind},\"apiVersion\":{api_version},\"metadata\":{metadata},\"items\":["
        )
    };
    let shown = request.view().api_version.map(str::to_owned);
    let mut body = ListBody::new(opening.into_bytes(), entries, shown, !is_custom);
    body.permit = permit;
    with_media(200, "application/json", Body::List(body))
}

fn whole(
    request: &ResourceRequest,
    metadata: Map<String, Value>,
    mut objects: Vec<Value>,
) -> Value {
    if request.resource.custom.is_none() {
        for object in objects.iter_mut().filter_map(Value::as_object_mut) {
            object.shift_remove("kind");
            object.shift_remove("apiVersion");
        }
    }
    json!({
        "kind": request.resource.list_kind, "apiVersion": request.resource.api_version(),
        "metadata": metadata, "items": objects,
    })
}

/// The page of objects that the query selects.
pub async fn page(request: &ResourceRequest) -> ApiResult<Page> {
    let selection = Selection::of(request)?;
    let query = &request.query;
    if query.optional_flag("sendInitialEvents").is_some() {
        let error = FieldError::plain(
            Reason::Forbidden,
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        );
        return Err(Status::invalid_thing("ListOptions.meta.k8s.io", "", &[error]));
    }
    let limit = usize::try_from(query.integer("limit")?.unwrap_or(0)).unwrap_or(0);
    let token = query.get("continue").filter(|token| !token.is_empty());
    let wanted = read_revision(query.get("resourceVersion"))?;
    let exact = check_match(request, wanted, token.is_some(), limit)?;
    if let Some(token) = token {
        return continued(request, &selection, token, limit);
    }
    wait_for(request, wanted.unwrap_or(0)).await?;
    // Any cached state will do for "0", and then pages are not cut.
    let limit = if wanted == Some(0) { 0 } else { limit };
    match wanted.filter(|_| exact) {
        None => Ok(cut(request, &selection, &request.server.store.snapshot(), ("", ""), limit)),
        Some(revision) => {
            let snapshot = past(request, revision)?;
            Ok(cut(request, &selection, &snapshot, ("", ""), limit))
        }
    }
}

/// Whether exactly the given revision is meant; refuses combinations that mean nothing.
fn check_match(
    request: &ResourceRequest,
    wanted: Option<u64>,
    continued: bool,
    limit: usize,
) -> ApiResult<bool> {
    let refuse = |reason, detail: &str| {
        let error = FieldError::plain(reason, "resourceVersionMatch", detail);
        Err(Status::invalid_thing("ListOptions.meta.k8s.io", "", &[error]))
    };
    let matched = request.query.get("resourceVersionMatch").filter(|matched| !matched.is_empty());
    if continued && matched.is_none() && wanted.is_some_and(|wanted| wanted > 0) {
        let message = "specifying resource version is not allowed when using continue";
        return Err(Status::bad_request(message));
    }
    match (matched, wanted) {
        (None, wanted) => Ok(limit > 0 && wanted.is_some_and(|wanted| wanted > 0)),
        (Some(_), _) if continued => {
            refuse(Reason::Forbidden, "resourceVersionMatch is forbidden when continue is provided")
        }
        (Some(_), None) => refuse(
            Reason::Forbidden,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (Some("Exact"), Some(0)) => refuse(
            Reason::Forbidden,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (Some("Exact"), Some(_)) => Ok(true),
        (Some("NotOlderThan"), Some(_)) => Ok(false),
        (Some(other), Some(_)) => {
            let error = FieldError::about(
                Reason::NotSupported,
                "resourceVersionMatch",
                &json!(other),
                "supported values: \"Exact\", \"NotOlderThan\", \"\"",
            );
            Err(Status::invalid_thing("ListOptions.meta.k8s.io", "", &[error]))
        }
    }
}

fn past(request: &ResourceRequest, revision: u64) -> ApiResult<Snapshot> {
    let shelf = request.cluster.shelf(&request.resource);
    request.server.store.shelf_at(&shelf, Revision(revision)).map_err(|_| too_old())
}

fn too_old() -> Box<Status> {
    Status::expired("The resourceVersion for the provided list is too old.")
}

fn continued(
    request: &ResourceRequest,
    selection: &Selection,
    token: &str,
    limit: usize,
) -> ApiResult<Page> {
    let refuse = |why: &str| {
        Status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('='));
    let bytes = bytes.map_err(|error| refuse(&error.to_string()))?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|error: serde_json::Error| {
        refuse(&go_json::error(&bytes).unwrap_or_else(|| error.to_string()))
    })?;
    let (Some(revision), Some(start)) = (token["rv"].as_i64(), token["start"].as_str()) else {
        return Err(refuse("it names no revision and place"));
    };
    let (namespace, name) = start.split_once('/').unwrap_or(("", start));
    let Ok(revision) = u64::try_from(revision) else {
        // Consistency was given up with the first page: go on with what there is now.
        let now = request.server.store.snapshot();
        return Ok(cut(request, selection, &now, (namespace, name), limit));
    };
    let kept = if request.server.has_expired(Revision(revision)) {
        Err(too_old())
    } else {
        past(request, revision)
    };
    match kept {
        Ok(snapshot) => Ok(cut(request, selection, &snapshot, (namespace, name), limit)),
        Err(mut status) => {
            "The provided continue parameter is too old to display a consistent list result. \
             You can start a new list without the continue parameter, or use the continue token \
             in this response to retrieve the remainder of the results. Continuing with the \
             provided token results in an inconsistent list - objects that were created, modified, \
             or deleted between the time the first chunk was returned and now may show up in the \
             list."
                .clone_into(&mut status.message);
            status.continue_from = Some(token_for(-1, start));
            Err(status)
        }
    }
}

/// The page that begins at a place.
fn cut(
    request: &ResourceRequest,
    selection: &Selection,
    snapshot: &Snapshot,
    (namespace, name): (&str, &str),
    limit: usize,
) -> Page {
    let shelf = request.cluster.shelf(&request.resource);
    let from =
        if namespace.is_empty() && name.is_empty() { &*selection.namespace } else { namespace };
    let in_reach = |entry: &&Arc<Entry>| {
        selection.namespace.is_empty() || entry.key.namespace == selection.namespace
    };
    let mut following = snapshot.list_from(&shelf, from, name).take_while(in_reach);
    let mut page =
        Page { revision: snapshot.revision(), entries: Vec::new(), next: None, remaining: None };
    let one_place = !request.resource.namespaced || !selection.namespace.is_empty();
    if let Some(pinned) = selection.fields.pins("metadata.name").filter(|_| one_place) {
        let found = snapshot.get(&shelf.key(&selection.namespace, pinned));
        page.entries =
            found.filter(|entry| selection.matches(entry)).cloned().into_iter().collect();
        return page;
    }
    for entry in following.by_ref().filter(|entry| selection.matches(entry)) {
        if limit > 0 && page.entries.len() == limit {
            let start = format!("{}/{}", entry.key.namespace, entry.key.name);
            let revision = i64::try_from(page.revision.0).unwrap_or(i64::MAX);
            page.next = Some(token_for(revision, &start));
            page.remaining = (!selection.is_narrowed()).then(|| following.count() + 1);
            break;
        }
        page.entries.push(Arc::clone(entry));
    }
    page
}

fn token_for(revision: i64, start: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
    URL_SAFE_NO_PAD.encode(token.to_string())
}
