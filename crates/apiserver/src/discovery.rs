//! Discovery: which groups, versions and resources there are.
//!
//! The same rows of the registry are shown in two forms: the older one, a document per group
//! and version, and the aggregated one, which tells everything in two requests.

mod aggregated;
pub(crate) mod order;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::header::{HeaderValue, VARY};
use http::{HeaderMap, Response};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use smol_str::SmolStr;

use crate::accept::{Accept, Form};
use crate::body::Body;
use crate::published::{Document, Published};
use crate::registry::{Registry, Resource, Subresource, api_version};
use crate::response::encoded;
use crate::status::{ApiResult, Status};

/// The media type by which clients know that they got the aggregated form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers `/api`, `/apis` and what lies beneath them but names no resource.
pub(crate) fn serve(
    published: &Published,
    segments: &[&str],
    accept: &str,
    headers: &HeaderMap,
    pretty: bool,
) -> ApiResult<Response<Body>> {
    let is_top = segments.len() == 1;
    let mut accept = Accept::read(accept, is_top)?;
    accept.pretty |= pretty;
    if is_top && accept.form == Form::GroupDiscovery {
        let core = segments == ["api"];
        let name = if core { "discovery/api" } else { "discovery/apis" };
        let make = |registry: &Registry| {
            Document::new(aggregated::groups(registry, core).to_string() + "\n")
        };
        let document = published.document(name, make);
        return Ok(document.respond(AGGREGATED, headers));
    }
    let value = legacy(&published.registry, segments).ok_or_else(Status::no_such_route)?;
    let mut response = encoded(200, &value, accept);
    if is_top {
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    }
    Ok(response)
}

/// The older form of a document.
fn legacy(registry: &Registry, segments: &[&str]) -> Option<Value> {
    match segments {
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        })),
        ["apis"] => {
            let groups = order::groups(registry).into_iter().filter(|(name, _)| !name.is_empty());
            let groups: Vec<Value> =
                groups.map(|(name, versions)| Value::Object(group(name, &versions))).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["api", version] => resources(registry, "", version),
        ["apis", name] => {
            let groups = registry.groups();
            let versions = groups.get(name).filter(|_| !name.is_empty())?;
            let mut value = json!({"kind": "APIGroup", "apiVersion": "v1"});
            value.as_object_mut()?.append(&mut group(name, versions));
            Some(value)
        }
        ["apis", name, version] => resources(registry, name, version),
        _ => None,
    }
}

fn group(name: &str, versions: &[&str]) -> Map<String, Value> {
    let version =
        |version: &&str| json!({"groupVersion": api_version(name, version), "version": version});
    let mut group = Map::new();
    group.insert("name".into(), json!(name));
    group.insert("versions".into(), versions.iter().map(version).collect());
    group.insert("preferredVersion".into(), versions.first().map(version).into());
    group
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut entries = Vec::new();
    for resource in registry.group_version(group, version)?.values() {
        entries.push(entry(resource));
        let mut parts: Vec<&Subresource> = resource.subresources.iter().collect();
        // Those of custom kinds come as they are defined.
        if resource.custom.is_none() {
            parts.sort_by(|a, b| a.name.cmp(&b.name));
        }
        entries.extend(parts.into_iter().map(|part| subresource_entry(resource, part)));
    }
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": api_version(group, version), "resources": entries,
    });
    // The oldest group has its list from before lists had versions.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

fn entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural, "singularName": resource.singular,
        "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs,
    });
    add_words(&mut entry, resource);
    if let Some(hash) = storage_version_hash(resource) {
        entry["storageVersionHash"] = json!(hash);
    }
    entry
}

/// What changes with the version that a resource is stored in, so that clients know when its
/// objects have to be written again; none if they are not stored.
fn storage_version_hash(resource: &Resource) -> Option<String> {
    resource.has_verb("list").then(|| {
        let version = match &resource.custom {
            Some(custom) => &custom.storage_version,
            None if resource.group == "autoscaling" => "v2",
            None => &*resource.version,
        };
        let stored = format!("{}/{version}/{}", resource.group, resource.kind);
        BASE64.encode(&Sha256::digest(stored)[..8])
    })
}

fn subresource_entry(resource: &Resource, part: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, part.name), "singularName": "",
        "namespaced": resource.namespaced,
    });
    let (group, version, kind) = kind_of(resource, part);
    if (&group, &version) != (&resource.group, &resource.version) {
        entry["group"] = json!(group);
        entry["version"] = json!(version);
    }
    entry["kind"] = json!(kind);
    entry["verbs"] = json!(verbs_of(part));
    entry
}

/// Other names of a resource, where it has some.
fn add_words(entry: &mut Value, resource: &Resource) {
    for (key, words) in
        [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !words.is_empty() {
            entry[key] = json!(words);
        }
    }
}

/// Group, version and kind of what a sub-resource takes and gives.
pub(crate) fn kind_of(resource: &Resource, part: &Subresource) -> (SmolStr, SmolStr, SmolStr) {
    let kind = part.kind.clone().unwrap_or_else(|| resource.kind.clone());
    let (group, version) = match kind.as_str() {
        "Scale" => ("autoscaling", "v1"),
        "Eviction" => ("policy", "v1"),
        "TokenRequest" => ("authentication.k8s.io", "v1"),
        _ => return (resource.group.clone(), resource.version.clone(), kind),
    };
    (SmolStr::new_static(group), SmolStr::new_static(version), kind)
}

/// What can be done with a sub-resource, which its name decides.
pub(crate) fn verbs_of(part: &Subresource) -> &'static [&'static str] {
    match part.name.as_str() {
        "binding" | "eviction" | "token" => &["create"],
        "finalize" => &["update"],
        "log" => &["get"],
        "attach" | "exec" | "portforward" => &["create", "get"],
        "proxy" => &["create", "delete", "get", "patch", "update"],
        _ => &["get", "patch", "update"],
    }
}

/// The paths of discovery.
pub(crate) fn paths(registry: &Registry) -> Vec<String> {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned(), "/apis/".to_owned()];
    for (group, versions) in registry.groups() {
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        paths.extend(versions.iter().map(|version| format!("{root}/{version}")));
        if !group.is_empty() {
            paths.push(root);
        }
    }
    paths
}

#[cfg(test)]
mod tests;
