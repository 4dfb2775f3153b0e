//! Deletes everything in a logical cluster when the cluster is deleted.

use std::sync::Arc;

use convoy_store::{Change, Transaction, Write};
use futures_util::future::join_all;
use smol_str::SmolStr;

use crate::clusters::logical;
use crate::kinds::logical::{CLEANUP, SHELF};
use crate::metrics::Work;
use crate::object_meta::Snapshot;
use crate::resource_request::ResourceRequest;
use crate::server::Server;
use crate::status::ApiResult;

use super::collect::{edit_metadata, retain};
use super::queue::Queue;
use super::{BATCH, Event};

/// Clusters that one step looks at: their writes become durable together.
const TOGETHER: usize = 16;

#[derive(Debug)]
pub(super) struct Clusters {
    pub(super) queue: Queue<SmolStr>,
}

impl Clusters {
    pub(super) fn new(counts: Work) -> Self {
        Self { queue: Queue::new(counts) }
    }

    pub(super) fn observe(&mut self, server: &Server, event: &Event) {
        let key = &event.entry.key;
        let cluster = &key.shelf.cluster;
        if cluster.is_empty() {
            if key.shelf.resource == SHELF {
                self.queue.add(key.name.clone());
            }
        } else if event.change != Change::Deleted && server.cluster(cluster).is_none() {
            // A request that was still under way when its cluster went.
            self.queue.add(cluster.clone());
        }
    }

    pub(super) async fn step(&mut self, server: &Arc<Server>) -> bool {
        let now = server.now();
        let names = self.queue.take(TOGETHER, now);
        let outcomes = join_all(names.iter().map(|name| look_at(server, name))).await;
        let is_busy = !names.is_empty();
        for (name, outcome) in names.into_iter().zip(outcomes) {
            match outcome {
                Ok(has_more) => {
                    self.queue.succeed(&name);
                    if has_more {
                        self.queue.add(name);
                    }
                }
                Err(status) => {
                    tracing::warn!(cluster = %name, message = status.message, "could not reconcile a logical cluster; retrying later");
                    self.queue.fail(name, now);
                }
            }
        }
        is_busy
    }
}

/// Serves a cluster, or goes one step towards its end; whether there is another to go at once.
async fn look_at(server: &Arc<Server>, name: &SmolStr) -> ApiResult<bool> {
    let snapshot = server.store.snapshot();
    let row = logical::row(server);
    let first = server.cluster("").expect("the first cluster is always there");
    let entry = snapshot.get(&first.shelf(&row).key("", name));
    if let Some(entry) = entry.filter(|entry| !entry.meta.is_deleting()) {
        logical::serve(server, entry).await?;
        return Ok(false);
    }
    server.remove_cluster(name);
    if remove_content(server, &snapshot, name).await? {
        return Ok(true);
    }
    if let Some(entry) = entry.filter(|entry| entry.meta.has_finalizer(CLEANUP)) {
        let request = ResourceRequest::internal(server, &first, &row, "", name);
        edit_metadata(request, name, Some(&entry.meta.uid), |metadata| {
            retain(metadata, "finalizers", |known| known != CLEANUP);
        })
        .await?;
    }
    Ok(false)
}

/// Removes some of what a cluster holds; whether there was any.
async fn remove_content(server: &Server, snapshot: &Snapshot, name: &str) -> ApiResult<bool> {
    let shelves = snapshot.shelves().filter(|shelf| shelf.cluster == name);
    let objects = shelves.flat_map(|shelf| snapshot.list(shelf)).take(BATCH);
    let writes: Vec<_> =
        objects.map(|entry| Write::delete(entry.key.clone(), entry.modified)).collect();
    if writes.is_empty() {
        return Ok(false);
    }
    server.commit(Transaction::new(writes)).await?;
    Ok(true)
}
