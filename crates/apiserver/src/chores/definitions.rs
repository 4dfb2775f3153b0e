//! Serves custom resource definitions, and deletes their objects when a definition is deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoy_store::{Change, Shelf};
use serde_json::Value;
use smol_str::SmolStr;

use crate::clusters::definitions;
use crate::conditions::{self, Condition};
use crate::encoding;
use crate::kinds::definition::{self, CLEANUP};
use crate::metrics::Work;
use crate::object_meta::{Entry, shelf_name};
use crate::own;
use crate::resource_request::ResourceRequest;
use crate::server::{Cluster, Server};
use crate::status::ApiResult;
use crate::surroundings::seconds;

use super::collect::{edit_metadata, retain};
use super::namespaces::delete_all;
use super::queue::Queue;
use super::{BATCH, Event};

/// The names of a logical cluster and of a definition in it.
type DefinitionKey = (SmolStr, SmolStr);

#[derive(Debug)]
pub(super) struct Definitions {
    /// The shelves of definitions that are being deleted.
    emptying: BTreeMap<Shelf, DefinitionKey>,
    pub(super) queue: Queue<DefinitionKey>,
}

impl Definitions {
    pub(super) fn new(counts: Work) -> Self {
        Self { emptying: BTreeMap::new(), queue: Queue::new(counts) }
    }

    pub(super) fn observe(&mut self, event: &Event) {
        let key = &event.entry.key;
        if key.shelf.resource != definition::resource().shelf {
            if let Some(definition) = self.emptying.get(&key.shelf) {
                self.queue.add(definition.clone());
            }
            return;
        }
        let Some((plural, group)) = key.name.split_once('.') else { return };
        let shelf =
            Shelf { cluster: key.shelf.cluster.clone(), resource: shelf_name(group, plural) };
        let definition = (key.shelf.cluster.clone(), key.name.clone());
        if event.change == Change::Deleted {
            self.emptying.remove(&shelf);
            return;
        }
        if event.entry.meta.is_deleting() {
            self.emptying.insert(shelf, definition.clone());
        }
        self.queue.add(definition);
    }

    pub(super) async fn step(&mut self, server: &Arc<Server>) -> bool {
        self.queue.work(server.now(), |definition| look_at(server, definition)).await
    }
}

/// Goes one step towards the end of a definition; whether there is another to go at once.
async fn look_at(server: &Arc<Server>, (cluster, name): DefinitionKey) -> ApiResult<bool> {
    let Some(cluster) = server.cluster(&cluster) else { return Ok(false) };
    let snapshot = server.store.snapshot();
    let key = cluster.shelf(definition::resource()).key("", &name);
    let Some(entry) = snapshot.get(&key) else { return Ok(false) };
    let object = encoding::read_entry(entry);
    if !entry.meta.is_deleting() {
        // Whoever wrote it may have ended before it was served.
        if object["status"]["conditions"].is_null() {
            definitions::refresh(server, &cluster, &name).await?;
        }
        return Ok(false);
    }
    if !entry.meta.has_finalizer(CLEANUP) {
        return Ok(false);
    }
    let resource = definition::storage_resource(&object).map(Arc::new);
    // One that was never served has no objects; those on its shelf are somebody else's.
    let is_served = conditions::is_true(&object["status"], "Established");
    if let Some(resource) = resource.filter(|_| is_served) {
        let objects = || snapshot.list(&cluster.shelf(&resource));
        let next: Vec<&Arc<Entry>> =
            objects().filter(|entry| !entry.meta.is_deleting()).take(BATCH).collect();
        if !next.is_empty() {
            delete_all(server, &cluster, &resource, &next).await?;
            return Ok(true);
        }
        if objects().next().is_some() {
            return note_progress(server, entry).await;
        }
    }
    finish(server, &cluster, &name, &entry.meta.uid).await?;
    Ok(false)
}

/// Objects are left that wait for somebody.
async fn note_progress(server: &Server, entry: &Arc<Entry>) -> ApiResult<bool> {
    let now = seconds(server.now());
    let condition = Condition {
        kind: "Terminating",
        is_true: true,
        reason: "InstanceDeletionInProgress",
        message: "objects are being deleted, and some wait for their finalizers",
    };
    let change = |object: &mut Value| conditions::set(&mut object["status"], &condition, &now);
    own::amend_at(server, definition::resource(), entry, change).await?;
    Ok(false)
}

async fn finish(
    server: &Arc<Server>,
    cluster: &Arc<Cluster>,
    name: &str,
    uid: &str,
) -> ApiResult<()> {
    let request = ResourceRequest::internal(server, cluster, definition::resource(), "", name);
    edit_metadata(request, name, Some(uid), |metadata| {
        retain(metadata, "finalizers", |known| known != CLEANUP);
    })
    .await
}
