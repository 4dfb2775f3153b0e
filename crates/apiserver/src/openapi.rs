//! OpenAPI: how every kind looks and what can be done with it, for clients that explain,
//! validate or merge.
//!
//! There is one document per group and version, and the whole once more in the older form.
//! Each is built on first use and kept compressed.

mod binary;
mod custom;
mod document;
mod enums;
#[cfg(test)]
mod kinds;
mod library;
mod names;
mod operations;
mod required;
mod schemas;
mod swagger;

use std::collections::BTreeMap;
use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, EXPIRES, HeaderValue, LOCATION, VARY};
use http::{HeaderMap, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::accept::Accept;
use crate::body::Body;
use crate::compress::takes_gzip;
use crate::published::{Document, Published, hash};
use crate::query::Query;
use crate::registry::{Registry, builtin};
use crate::status::{ApiResult, Status};

const JSON: &str = "application/json";

/// Answers what lies beneath `/openapi`.
pub(crate) fn serve(
    published: &Published,
    segments: &[&str],
    query: &Query,
    accept: &str,
    headers: &HeaderMap,
    now: Timestamp,
) -> ApiResult<Response<Body>> {
    if *segments == ["v2"] && accept.split([',', ';']).next() == Some(binary::ASKED) {
        let make = |registry: &Registry| packed(&binary::encoded(&swagger::whole(registry)));
        let document = published.document("openapi/v2 in protobuf", make);
        return respond(&document, binary::MEDIA, headers);
    }
    // Of the newer form protobuf is not offered; who asks for it alone is told so, and takes JSON.
    Accept::read(accept, false)?;
    match segments {
        ["v2"] => {
            let make = |registry: &Registry| compressed(&swagger::whole(registry));
            let document = published.document("openapi/v2", make);
            respond(&document, JSON, headers)
        }
        ["v3"] => {
            let make = |registry: &Registry| Document::new(index(registry).to_string());
            Ok(published.document("openapi/v3", make).respond(JSON, headers))
        }
        ["v3", path @ ..] => {
            let asked = query.get("hash");
            let mut response = group_version(published, path, asked, headers)?;
            if asked.is_some() && response.status() == StatusCode::OK {
                keep_for_ever(&mut response, now);
            }
            Ok(response)
        }
        _ => Err(Status::no_such_route()),
    }
}

/// Where each group's document is, under an address that changes when the document does.
fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path = path_of(group, version);
            let url = address(registry, group, version);
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

fn address(registry: &Registry, group: &str, version: &str) -> String {
    let fingerprint = fingerprint(registry, group, version);
    format!("/openapi/v3/{}?hash={fingerprint}", path_of(group, version))
}

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn group_version(
    published: &Published,
    path: &[&str],
    asked: Option<&str>,
    headers: &HeaderMap,
) -> ApiResult<Response<Body>> {
    let (group, version) = match *path {
        ["api", version] => ("", version),
        ["apis", group, version] if !group.is_empty() => (group, version),
        _ => return Err(Status::no_such_route()),
    };
    let registry = &published.registry;
    if registry.group_version(group, version).is_none() {
        return Err(Status::no_such_route());
    }
    if asked.is_some_and(|asked| asked != &*fingerprint(registry, group, version)) {
        return Ok(moved(&address(registry, group, version)));
    }
    respond(&text_of(published, group, version), JSON, headers)
}

/// What stands under an address with its hash never changes.
fn keep_for_ever(response: &mut Response<Body>, now: Timestamp) {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    let expires = now.saturating_add(SignedDuration::from_hours(365 * 24));
    let text = expires.map(|time| time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    if let Some(value) = text.ok().and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(EXPIRES, value);
    }
}

/// What the document depends on, without making it: an index of hashes must not cost the
/// making of all documents.
fn fingerprint(registry: &Registry, group: &str, version: &str) -> std::sync::Arc<str> {
    let mut basis = crate::version::git_version();
    let resources = registry.group_version(group, version).into_iter().flat_map(BTreeMap::values);
    for resource in resources {
        basis = format!(
            "{basis}\n{} {} {} {} {:?} {:?}",
            resource.api_version(),
            resource.plural,
            resource.kind,
            resource.namespaced,
            resource.verbs,
            resource.subresources
        );
        if let Some(custom) = &resource.custom {
            basis = format!("{basis}{:?}", custom.form.digest());
        }
    }
    hash(basis.as_bytes())
}

/// The document of a group and version, compressed. Those of built-in kinds are the same in
/// all logical clusters, and kept once.
fn text_of(published: &Published, group: &str, version: &str) -> Document {
    static BUILTIN: Mutex<BTreeMap<String, Document>> = Mutex::new(BTreeMap::new());
    let name = format!("openapi/v3/{}", path_of(group, version));
    let make = |registry: &Registry| compressed(&document::of(registry, group, version));
    let of = |registry: &Registry| registry.group_version(group, version).map(BTreeMap::len);
    let is_shared = of(&published.registry) == of(builtin());
    if !is_shared {
        return published.document(&name, make);
    }
    if let Some(known) = BUILTIN.lock().get(&name) {
        return known.clone();
    }
    let document = make(&published.registry);
    BUILTIN.lock().insert(name, document.clone());
    document
}

fn compressed(value: &Value) -> Document {
    packed(value.to_string().as_bytes())
}

fn packed(whole: &[u8]) -> Document {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(whole).and_then(|()| encoder.finish());
    let bytes = written.expect("memory takes what is written to it");
    Document { bytes: Bytes::from(bytes), hash: hash(whole) }
}

/// The document, compressed as it is kept if the client takes that.
fn respond(
    document: &Document,
    media: &'static str,
    headers: &HeaderMap,
) -> ApiResult<Response<Body>> {
    let takes_gzip = takes_gzip(headers);
    let shown = if takes_gzip {
        document.clone()
    } else {
        let mut text = Vec::new();
        let read = GzDecoder::new(&document.bytes[..]).read_to_end(&mut text);
        read.map_err(Status::internal)?;
        Document { bytes: Bytes::from(text), hash: document.hash.clone() }
    };
    let mut response = shown.respond(media, headers);
    let is_whole = response.status() == StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    if takes_gzip && is_whole {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

fn moved(to: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let location = HeaderValue::try_from(to).unwrap_or(HeaderValue::from_static("/openapi/v3"));
    response.headers_mut().insert(LOCATION, location);
    response
}

#[cfg(test)]
mod tests;
