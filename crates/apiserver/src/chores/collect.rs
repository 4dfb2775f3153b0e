//! Carries out the decisions of the garbage collector, through the same verbs that clients use.

use std::sync::Arc;

use convoy_store::Key;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::metadata;
use crate::metrics::Work;
use crate::object_meta::Owner;
use crate::options::Options;
use crate::registry::Resource;
use crate::request_info::Verb;
use crate::resource_request::ResourceRequest;
use crate::server::{Cluster, Server};
use crate::status::{ApiResult, Status};
use crate::verb::delete::{DeleteOptions, delete_named};
use crate::write::{self, Wanted};

use super::garbage::{Action, Garbage, Task};
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
        self.garbage.observe(event, &|key, owner| owner_key(server, key, owner));
    }

    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        self.garbage.queue.wake_at()
    }

    /// Looks at the next few objects; whether there were any.
    pub(super) async fn step(&mut self, server: &Arc<Server>) -> bool {
        let now = server.now();
        let keys = self.garbage.queue.take(BATCH, now);
        let snapshot = server.store.snapshot();
        let owner_key = |key: &Key, owner: &Owner| owner_key(server, key, owner);
        let decided: Vec<(Key, Vec<Task>)> = keys
            .into_iter()
            .map(|key| (key.clone(), self.garbage.decide(&snapshot, &owner_key, &key)))
            .collect();
        let was_busy = !decided.is_empty();
        let work = decided.into_iter().map(|(key, tasks)| async move {
            let mut outcome = Ok(());
            for task in tasks {
                let answer = carry_out(server, &task).await;
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
                    tracing::warn!(%key, message = status.message, "could not collect an object; retrying later");
                    self.garbage.queue.fail(key, now);
                }
            }
        }
        was_busy
    }
}

/// Where an owner is: in no namespace if its kind has none, else in its dependent's.
fn owner_key(server: &Server, dependent: &Key, owner: &Owner) -> Option<Key> {
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

async fn carry_out(server: &Arc<Server>, task: &Task) -> ApiResult<()> {
    let Some((cluster, resource)) = served(server, &task.key) else { return Ok(()) };
    let key = &task.key;
    let request = ResourceRequest::internal(server, &cluster, &resource, &key.namespace, &key.name);
    match &task.action {
        Action::Delete(propagation) => {
            let request = request.with_verb(Verb::Delete);
            let options = DeleteOptions::fenced(*propagation, &task.uid, task.revision);
            delete_named(&request, &key.name, &options).await?;
            Ok(())
        }
        Action::DropOwners(uids) => {
            change(request, task, |metadata| {
                retain(metadata, "ownerReferences", |owner| {
                    !uids.iter().any(|uid| owner["uid"] == uid.as_str())
                });
            })
            .await
        }
        Action::Unblock => {
            change(request, task, |metadata| {
                let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
                for owner in owners.into_iter().flatten().filter(|owner| owner.is_object()) {
                    owner["blockOwnerDeletion"] = json!(false);
                }
            })
            .await
        }
        Action::RemoveFinalizer(name) => remove_finalizer(request, task, name).await,
    }
}

/// The resource that a stored object is served as.
pub(super) fn served(server: &Server, key: &Key) -> Option<(Arc<Cluster>, Arc<Resource>)> {
    let cluster = server.cluster(&key.shelf.cluster)?;
    let resource = Arc::clone(cluster.registry().of_shelf(&key.shelf.resource)?);
    Some((cluster, resource))
}

async fn remove_finalizer(request: ResourceRequest, task: &Task, name: &str) -> ApiResult<()> {
    change(request, task, |metadata| retain(metadata, "finalizers", |known| known != name)).await
}

async fn change(
    request: ResourceRequest,
    task: &Task,
    edit: impl Fn(&mut serde_json::Map<String, Value>) + Send + Sync,
) -> ApiResult<()> {
    edit_metadata(request, &task.key.name, Some(&task.uid), edit).await
}

/// Changes the metadata of an object, if it is still the one that was meant.
pub(super) async fn edit_metadata(
    request: ResourceRequest,
    name: &str,
    uid: Option<&str>,
    edit: impl Fn(&mut serde_json::Map<String, Value>) + Send + Sync,
) -> ApiResult<()> {
    let request = &request.with_verb(Verb::Patch);
    let options = Options::internal();
    let wanted = |current: &Value| {
        if uid.is_some_and(|uid| metadata::text(current, "uid") != uid) {
            return Err(Status::not_found(&request.resource, name));
        }
        let mut object = current.clone();
        edit(metadata::of(&mut object));
        Ok(Wanted { object, is_pinned: false })
    };
    write::modify(request, name, &options, wanted).await?;
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
