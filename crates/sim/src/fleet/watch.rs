//! Watches: everything there is of a kind, then every change, for as long as it takes.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;
use tokio::sync::mpsc;

use super::WatchedObject;
use crate::component::{Key, Kind, LEASES};

/// Sends every object of a kind, and every change, until the receiver is dropped.
pub(super) async fn watch_kind(client: Client, kind: Kind, to: mpsc::Sender<WatchedObject>) {
    let events = watcher(api(client, kind), watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut known: BTreeSet<Key> = BTreeSet::new();
    let mut listed: BTreeSet<Key> = BTreeSet::new();
    while let Some(event) = events.next().await {
        let changes = match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                Vec::new()
            }
            Ok(watcher::Event::InitApply(object)) => {
                let changes = present(kind, object);
                listed.insert(changes.key.clone());
                vec![changes]
            }
            Ok(watcher::Event::InitDone) => {
                // What was there before and is no longer listed went while we could not see.
                let gone = known.difference(&listed).cloned();
                let gone: Vec<WatchedObject> =
                    gone.map(|key| WatchedObject { key, object: None }).collect();
                known.clone_from(&listed);
                gone
            }
            Ok(watcher::Event::Apply(object)) => {
                let changes = present(kind, object);
                known.insert(changes.key.clone());
                vec![changes]
            }
            Ok(watcher::Event::Delete(object)) => {
                let key = present(kind, object).key;
                known.remove(&key);
                vec![WatchedObject { key, object: None }]
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, ?kind, "a watch failed and is resumed");
                Vec::new()
            }
        };
        for changes in changes {
            if to.send(changes).await.is_err() {
                return;
            }
        }
    }
}

fn api(client: Client, kind: Kind) -> Api<DynamicObject> {
    let resource = |group, name| ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", name));
    match kind {
        Kind::Pod => Api::all_with(client, &resource("", "Pod")),
        Kind::Node => Api::all_with(client, &resource("", "Node")),
        Kind::Event => Api::all_with(client, &resource("", "Event")),
        Kind::Lease => {
            Api::namespaced_with(client, LEASES, &resource("coordination.k8s.io", "Lease"))
        }
    }
}

fn present(kind: Kind, mut object: DynamicObject) -> WatchedObject {
    object.metadata.managed_fields = None; // a third of an object, and nothing here reads it
    let value = serde_json::to_value(&object).unwrap_or(Value::Null);
    WatchedObject { key: Key::of(kind, &value), object: Some(value.into()) }
}
