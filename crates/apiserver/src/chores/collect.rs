//! Carries out what is decided about garbage, through the verbs that everybody uses.

use std::sync::Arc;

use convoy_store::Key;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use crate::ask::Ask;
use crate::head::Owner;
use crate::metadata;
use crate::metrics::Work;
use crate::registry::Resource;
use crate::server::{Cluster, Server};
use crate::status::{Answer, Status};
use crate::verb::delete::{DeleteOptions, delete_named};
use crate::write::{self, Options, Wanted};

use super::garbage::{Act, Garbage, What};
use super::{BATCH, Event, is_overtaken, is_to_repeat};

/// The garbage collector.
#[derive(Debug)]
pub(super) struct Collector {
    garbage: Garbage,
}

impl Collector {
    pub(super) fn new(counts: Work) -> Self {
        Self { garbage: Garbage::new(counts) }
    }

    pub(super) fn observe(&mut self, server: &Server, event: &Event) {
        self.garbage.observe(event, &|key, owner| place(server, key, owner));
    }

    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        self.garbage.queue.wake_at()
    }

    /// Looks at the next few objects; whether there were any.
    pub(super) async fn step(&mut self, server: &Arc<Server>) -> bool {
        let now = server.now();
        let keys = self.garbage.queue.take(BATCH, now);
        let snapshot = server.store.snapshot();
        let place = |key: &Key, owner: &Owner| place(server, key, owner);
        let decided: Vec<(Key, Vec<Act>)> = keys
            .into_iter()
            .map(|key| (key.clone(), self.garbage.decide(&snapshot, &place, &key)))
            .collect();
        let was_busy = !decided.is_empty();
        let work = decided.into_iter().map(|(key, acts)| async move {
            let mut outcome = Ok(());
            for act in acts {
                let answer = carry_out(server, &act).await;
                // What went wrong matters more than what was overtaken.
                if outcome.is_ok() || is_to_repeat(&answer) {
                    outcome = answer;
                }
            }
            (key, outcome)
        });
        for (key, outcome) in join_all(work).await {
            match outcome {
                Ok(()) => self.garbage.queue.succeed(&key),
                Err(status) if is_overtaken(&status) => {
                    self.garbage.queue.succeed(&key);
                    self.garbage.queue.add(key);
                }
                Err(status) => {
                    tracing::warn!(%key, message = status.message, "garbage could not be collected");
                    self.garbage.queue.fail(key, now);
                }
            }
        }
        was_busy
    }
}

/// Where an owner is: in no namespace if its kind has none, else in its dependent's.
fn place(server: &Server, dependent: &Key, owner: &Owner) -> Option<Key> {
    let cluster = server.cluster(&dependent.shelf.cluster)?;
    let registry = cluster.registry();
    let (group, _) = crate::registry::split_api_version(&owner.api_version);
    let exact = registry.of_kind(&owner.api_version, &owner.kind);
    let resource = exact.or_else(|| {
        // The version may not be served any more.
        let mut others = registry.iter();
        others.find(|resource| resource.group == group && resource.kind == owner.kind)
    })?;
    match (resource.namespaced, dependent.namespace.is_empty()) {
        // An object of the whole cluster cannot belong to one of a namespace.
        (true, true) => None,
        (true, false) => Some(cluster.shelf(resource).key(&dependent.namespace, &owner.name)),
        (false, _) => Some(cluster.shelf(resource).key("", &owner.name)),
    }
}

async fn carry_out(server: &Arc<Server>, act: &Act) -> Answer<()> {
    let Some((cluster, resource)) = served(server, &act.key) else { return Ok(()) };
    let key = &act.key;
    let mut ask = Ask::internal(server, &cluster, &resource, &key.namespace, &key.name);
    match &act.what {
        What::Delete(propagation) => {
            ask.verb = SmolStr::new("delete");
            let options = DeleteOptions::fenced(*propagation, &act.uid, act.revision);
            delete_named(&ask, &key.name, &options).await?;
            Ok(())
        }
        What::DropOwners(uids) => {
            change(&mut ask, act, |metadata| {
                retain(metadata, "ownerReferences", |owner| {
                    !uids.iter().any(|uid| owner["uid"] == uid.as_str())
                });
            })
            .await
        }
        What::Unblock => {
            change(&mut ask, act, |metadata| {
                let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
                for owner in owners.into_iter().flatten().filter(|owner| owner.is_object()) {
                    owner["blockOwnerDeletion"] = json!(false);
                }
            })
            .await
        }
        What::RemoveFinalizer(name) => remove_finalizer(&mut ask, act, name).await,
    }
}

/// The resource that a stored object is served as.
pub(super) fn served(server: &Server, key: &Key) -> Option<(Arc<Cluster>, Arc<Resource>)> {
    let cluster = server.cluster(&key.shelf.cluster)?;
    let resource = Arc::clone(cluster.registry().of_shelf(&key.shelf.resource)?);
    Some((cluster, resource))
}

async fn remove_finalizer(ask: &mut Ask, act: &Act, name: &str) -> Answer<()> {
    change(ask, act, |metadata| retain(metadata, "finalizers", |known| known != name)).await
}

async fn change(
    ask: &mut Ask,
    act: &Act,
    edit: impl Fn(&mut serde_json::Map<String, Value>) + Send + Sync,
) -> Answer<()> {
    edit_metadata(ask, &act.key.name, Some(&act.uid), edit).await
}

/// Changes the metadata of an object, if it is still the one that was meant.
pub(super) async fn edit_metadata(
    ask: &mut Ask,
    name: &str,
    uid: Option<&str>,
    edit: impl Fn(&mut serde_json::Map<String, Value>) + Send + Sync,
) -> Answer<()> {
    ask.verb = SmolStr::new("patch");
    let options = Options::internal();
    let ask = &*ask;
    let wanted = |current: &Value| {
        if uid.is_some_and(|uid| metadata::text(current, "uid") != uid) {
            return Err(Status::not_found(&ask.resource, name));
        }
        let mut object = current.clone();
        edit(metadata::of(&mut object));
        Ok(Wanted { object, is_pinned: false })
    };
    write::modify(ask, name, &options, wanted).await?;
    Ok(())
}

/// Keeps some items of a list, and no empty list.
pub(super) fn retain(
    metadata: &mut serde_json::Map<String, Value>,
    field: &str,
    keep: impl Fn(&Value) -> bool,
) {
    if let Some(Value::Array(items)) = metadata.get_mut(field) {
        items.retain(keep);
        if items.is_empty() {
            metadata.shift_remove(field);
        }
    }
}
