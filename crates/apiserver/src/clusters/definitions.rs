//! Definitions of custom kinds as clusters serve them.
//!
//! A definition is served before its status says so, and its rows in the registry are those of
//! its newest version: a write of a definition updates the registry before it responds.

use std::sync::atomic::Ordering;

use serde_json::Value;

use super::services;
use crate::encoding;
use crate::kinds::definition::{compile, is_true, names, resource, settle};
use crate::kinds::logical;
use crate::object_meta::Entry;
use crate::own;
use crate::registry::Registry;
use crate::server::{Cluster, Server};
use crate::status::ApiResult;

/// Serves what the stored definitions of a cluster say: at start, before any request.
pub(crate) fn load(server: &Server, cluster: &Cluster) {
    let snapshot = server.store.snapshot();
    let mut registry = Registry::clone(&cluster.registry());
    for entry in snapshot.list(&cluster.shelf(resource())) {
        let definition = encoding::read_entry(entry);
        if is_true(&definition, "Established") {
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
        let taken = names::taken(&snapshot, &shelf, &definition, &logical::resource());
        let verdict = names::judge(&definition, &taken);
        if verdict.is_served(&definition) {
            let mut registry = Registry::clone(&cluster.registry());
            add(server, cluster, &mut registry, &definition, entry);
            cluster.set_registry(registry);
        }
        let now = server.now();
        let change = |current: &mut Value| settle(current, &verdict, now);
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
