//! `CustomResourceDefinitions`: what users add to the kinds of their cluster.
//!
//! A definition is served before its status says so, and its rows in the registry are those of
//! its newest version: a write of a definition updates the registry before it responds.

mod compile;
mod names;
mod rules;
mod schema;
mod state;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::discovery::services;
use crate::encoding;
use crate::object_meta::Entry;
use crate::own;
use crate::registry::{Registry, Resource, builtin};
use crate::server::{Cluster, Server};
use crate::status::ApiResult;

pub(crate) use compile::storage_resource;
pub(crate) use rules::validate;
pub(crate) use state::{CLEANUP, mark_deleting, prepare_create, prepare_update};

/// The row of definitions themselves.
pub(crate) fn resource() -> &'static Arc<Resource> {
    let found = builtin().get("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    found.expect("a built-in resource")
}

pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.is("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Fills in what a definition leaves out.
pub(crate) fn default(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut fill = |field: &str, value: String| {
            let is_empty = names.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
            if is_empty && !kind.is_empty() {
                names.insert(field.into(), json!(value));
            }
        };
        fill("singular", kind.to_lowercase());
        fill("listKind", format!("{kind}List"));
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    if let Some(service) = spec.pointer_mut("/conversion/webhook/clientConfig/service")
        && service.is_object()
        && service["port"].is_null()
    {
        service["port"] = json!(443);
    }
}

/// Serves what the stored definitions of a cluster say: at start, before any request.
pub(crate) fn load(server: &Server, cluster: &Cluster) {
    let snapshot = server.store.snapshot();
    let mut registry = Registry::clone(&cluster.registry());
    for entry in snapshot.list(&cluster.shelf(resource())) {
        let definition = encoding::read_entry(entry);
        if state::is_true(&definition, "Established") {
            add(server, cluster, &mut registry, &definition, entry);
        }
    }
    cluster.set_registry(registry);
}

/// Brings the cluster's kinds, and the states of definitions, up to date after a change of the
/// definition called `name`.
pub(crate) async fn refresh(server: &Server, cluster: &Cluster, name: &str) -> ApiResult<()> {
    let _held = cluster.definitions.lock().await;
    let shelf = cluster.shelf(resource());
    let mut todo = vec![name.to_owned()];
    while let Some(name) = todo.pop() {
        let snapshot = server.store.snapshot();
        let Some(entry) = snapshot.get(&shelf.key("", &name)) else {
            let mut registry = Registry::clone(&cluster.registry());
            registry.remove_definition(&name);
            cluster.set_registry(registry);
            let group = name.split_once('.').map_or("", |(_, group)| group);
            todo.extend(names::waiting(&snapshot, &shelf, group));
            continue;
        };
        let definition = encoding::read_entry(entry);
        let taken = names::taken(&snapshot, &shelf, &definition);
        let verdict = names::judge(&definition, &taken);
        if verdict.is_served(&definition) {
            let mut registry = Registry::clone(&cluster.registry());
            add(server, cluster, &mut registry, &definition, entry);
            cluster.set_registry(registry);
        }
        let now = server.now();
        let change = |current: &mut Value| state::settle(current, &verdict, now);
        // Somebody else may change the definition meanwhile. Then it is looked at again by
        // whoever did, after this.
        if own::amend_at(server, resource(), entry, change).await? {
            todo.extend(names::waiting(&snapshot, &shelf, &verdict.group));
        }
    }
    services::keep(server, cluster).await
}

/// Puts the served versions of a definition into a registry, in place of those it had.
fn add(
    server: &Server,
    cluster: &Cluster,
    registry: &mut Registry,
    definition: &Value,
    entry: &Entry,
) {
    let before = cluster.registry();
    registry.remove_definition(&entry.key.name);
    for row in compile::rows(definition) {
        let history = compile::History {
            before: before.get(&row.group, &row.version, &row.plural),
            has_objects: server.store.snapshot().count(&cluster.shelf(&row)) > 0,
            written: entry.modified,
            now: server.now(),
        };
        registry.insert(compile::settle_defaults(row, &history));
    }
}

/// Notes that every request is over which may have written by an older schema.
pub(crate) fn settle_defaults(server: &Server) {
    let (now, revision) = (server.now(), server.store.revision());
    for cluster in server.clusters() {
        for resource in cluster.registry().customs() {
            if let Some(custom) = &resource.custom
                && custom.defaults_settle_at.is_some_and(|at| at <= now)
            {
                // Once is enough: later writes have the defaults too.
                let since = &custom.defaults_since;
                let _ = since.compare_exchange(
                    u64::MAX,
                    revision.0,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
