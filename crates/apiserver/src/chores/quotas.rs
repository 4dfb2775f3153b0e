//! The usage in the status of resource quotas: what a write takes is charged with the write; this
//! counts again when a quota is new or changed, and when something is given back.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_plan::quota;
use convoy_store::{Change, Key};
use serde_json::Value;
use smol_str::SmolStr;

use crate::encoding;
use crate::metrics::Work;
use crate::object_meta::Snapshot;
use crate::own;
use crate::server::{Cluster, Server};
use crate::status::ApiResult;
use crate::write::charge::resource;

use super::Event;
use super::queue::Queue;

/// Pods, claims and services change what they use while they are there.
const CHANGING: [&str; 4] =
    ["pods", "persistentvolumeclaims", "services", "resource.k8s.io/resourceclaims"];

/// What the server writes into a new namespace.
const FURNISHED: [(&str, &str); 2] =
    [("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")];

#[derive(Debug)]
pub(super) struct Quotas {
    /// How many quotas there are, by logical cluster and namespace.
    limited: BTreeMap<(SmolStr, SmolStr), usize>,
    pub(super) queue: Queue<Key>,
}

impl Quotas {
    pub(super) fn new(counts: Work) -> Self {
        Self { limited: BTreeMap::new(), queue: Queue::new(counts) }
    }

    pub(super) fn observe(&mut self, server: &Server, event: &Event) {
        let key = &event.entry.key;
        if key.namespace.is_empty() {
            return;
        }
        if key.shelf.resource == "resourcequotas" {
            self.observe_quota(event);
        }
        let place = (key.shelf.cluster.clone(), key.namespace.clone());
        if self.limited.contains_key(&place) && changes_usage(server, event) {
            let Some(cluster) = server.cluster(&key.shelf.cluster) else { return };
            let snapshot = server.store.snapshot();
            for entry in snapshot.list_namespace(&cluster.shelf(resource()), &key.namespace) {
                self.queue.add(entry.key.clone());
            }
        }
    }

    fn observe_quota(&mut self, event: &Event) {
        let key = &event.entry.key;
        let place = (key.shelf.cluster.clone(), key.namespace.clone());
        match event.change {
            // At a start all quotas come like this: what was given back before is not known.
            Change::Created => {
                *self.limited.entry(place).or_default() += 1;
                self.queue.add(key.clone());
                return;
            }
            Change::Deleted => {
                if let Some(count) = self.limited.get_mut(&place) {
                    *count -= 1;
                    if *count == 0 {
                        self.limited.remove(&place);
                    }
                }
                return;
            }
            Change::Modified => {}
        }
        if !quota::is_settled(&encoding::read_entry(&event.entry)) {
            self.queue.add(key.clone());
        }
    }

    pub(super) async fn step(&mut self, server: &Arc<Server>) -> bool {
        self.queue.work(server.now(), |quota| count(server, quota)).await
    }
}

/// Whether an object uses less than before, or something else, or was never charged: the server
/// furnishes namespaces whatever their quotas say.
fn changes_usage(server: &Server, event: &Event) -> bool {
    let key = &event.entry.key;
    let shelf = key.shelf.resource.as_str();
    match (event.change, &event.previous) {
        (Change::Deleted, _) => shelf != "events",
        (Change::Created, _) => FURNISHED.contains(&(shelf, key.name.as_str())),
        (Change::Modified, Some(previous)) if CHANGING.contains(&shelf) => {
            let resource =
                if shelf.contains('/') { "resourceclaims.resource.k8s.io" } else { shelf };
            let (before, after) =
                (encoding::read_entry(previous), encoding::read_entry(&event.entry));
            quota::releases(resource, &before, &after, server.now())
        }
        _ => false,
    }
}

/// Counts what is used of a quota; whether to do so again at once, since it changed meanwhile.
async fn count(server: &Arc<Server>, key: Key) -> ApiResult<bool> {
    let Some(cluster) = server.cluster(&key.shelf.cluster) else { return Ok(false) };
    let snapshot = server.store.snapshot();
    let Some(entry) = snapshot.get(&key) else { return Ok(false) };
    let content = |qualified: &str| content(&snapshot, &cluster, qualified, &key.namespace);
    let quota = encoding::read_entry(entry);
    let status = quota::status(&quota, content, server.now());
    if status == quota["status"] {
        return Ok(false);
    }
    let written = own::amend_at(server, resource(), entry, |quota| quota["status"] = status);
    if written.await? {
        return Ok(false);
    }
    Ok(server.store.snapshot().get(&key).is_some_and(|newest| newest.modified != entry.modified))
}

/// The objects of a namespace of one resource, as they are stored.
fn content(snapshot: &Snapshot, cluster: &Cluster, qualified: &str, namespace: &str) -> Vec<Value> {
    let registry = cluster.registry();
    let stored = registry.stored();
    let Some(counted) = stored.into_iter().find(|it| it.namespaced && it.qualified() == qualified)
    else {
        return Vec::new();
    };
    let entries = snapshot.list_namespace(&cluster.shelf(counted), namespace);
    entries.map(|entry| encoding::read_entry(entry)).collect()
}
