//! Discovery in one document: all groups with all that they serve.

use serde_json::{Value, json};

use super::{add_words, kind_of, order, verbs_of};
use crate::registry::{Registry, Resource, Subresource};

/// Either the core group alone or all others.
pub(super) fn groups(registry: &Registry, core: bool) -> Value {
    let groups = order::groups(registry).into_iter().filter(|(name, _)| name.is_empty() == core);
    let items: Vec<Value> = groups
        .map(|(name, versions)| {
            let metadata = if core { json!({}) } else { json!({"name": name}) };
            let versions: Vec<Value> =
                versions.iter().map(|version| group_version(registry, name, version)).collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items,
    })
}

fn group_version(registry: &Registry, group: &str, version: &str) -> Value {
    let resources = registry.group_version(group, version).into_iter().flat_map(|all| all.values());
    let resources: Vec<Value> = resources.map(|resource| entry(resource)).collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": {
            "group": resource.group, "version": told(&resource.group, &resource.version),
            "kind": resource.kind,
        },
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    add_words(&mut entry, resource);
    if !resource.subresources.is_empty() {
        let mut parts: Vec<&Subresource> = resource.subresources.iter().collect();
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        entry["subresources"] = parts.into_iter().map(|part| subresource(resource, part)).collect();
    }
    entry
}

/// The version of a kind; the oldest group leaves it to the list that the kind is in.
fn told<'v>(group: &str, version: &'v str) -> &'v str {
    if group.is_empty() { "" } else { version }
}

fn subresource(resource: &Resource, part: &Subresource) -> Value {
    let (group, version, kind) = kind_of(resource, part);
    json!({
        "subresource": part.name,
        "responseKind": {"group": group, "version": told(&group, &version), "kind": kind},
        "verbs": verbs_of(part),
    })
}
