//! The namespace lifecycle: initial objects of new namespaces, deletion of content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use convoy_store::Change;
use futures_util::future::join_all;
use serde_json::Value;
use smol_str::SmolStr;

use crate::clusters::bootstrap::furnish;
use crate::conditions::{self, Condition};
use crate::encoding;
use crate::kinds;
use crate::metrics::Work;
use crate::object_meta::{Entry, Snapshot};
use crate::options::Options;
use crate::own;
use crate::registry::{Resource, builtin};
use crate::request_info::Verb;
use crate::resource_request::ResourceRequest;
use crate::server::{Cluster, Server};
use crate::status::ApiResult;
use crate::surroundings::seconds;
use crate::verb::delete::{DeleteOptions, Propagation, delete_named};
use crate::write::{self, Wanted};

use super::queue::Queue;
use super::{BATCH, Event, is_overtaken};

/// What keeps a namespace until it is empty.
const CONTENT: &str = "kubernetes";
const ACCOUNT: &str = "default";
const CERTIFICATES: &str = "kube-root-ca.crt";

/// The names of a logical cluster and of a namespace in it.
type NamespaceKey = (SmolStr, SmolStr);

#[derive(Debug)]
pub(super) struct Namespaces {
    emptying: BTreeSet<NamespaceKey>,
    pub(super) queue: Queue<NamespaceKey>,
}

impl Namespaces {
    pub(super) fn new(counts: Work) -> Self {
        Self { emptying: BTreeSet::new(), queue: Queue::new(counts) }
    }

    pub(super) fn observe(&mut self, event: &Event) {
        let key = &event.entry.key;
        let cluster = || key.shelf.cluster.clone();
        if key.shelf.resource == "namespaces" {
            let namespace = (cluster(), key.name.clone());
            match event.change {
                Change::Deleted => {
                    self.emptying.remove(&namespace);
                }
                _ if event.entry.meta.is_deleting() => {
                    self.emptying.insert(namespace.clone());
                    self.queue.add(namespace);
                }
                Change::Created => self.queue.add(namespace),
                Change::Modified => {}
            }
        } else if !key.namespace.is_empty() {
            let is_lost = match (key.shelf.resource.as_str(), key.name.as_str()) {
                ("serviceaccounts", ACCOUNT) => event.change == Change::Deleted,
                // Pods trust this server by it, so nobody else decides what it says.
                ("configmaps", CERTIFICATES) => event.change != Change::Created,
                _ => false,
            };
            if is_lost || !self.emptying.is_empty() {
                let namespace = (cluster(), key.namespace.clone());
                if is_lost || self.emptying.contains(&namespace) {
                    self.queue.add(namespace);
                }
            }
        }
    }

    pub(super) async fn step(&mut self, server: &Arc<Server>) -> bool {
        self.queue.work(server.now(), |namespace| look_at(server, namespace)).await
    }
}

/// Furnishes a namespace, or goes one step towards its end; whether there is another step to go
/// at once.
async fn look_at(server: &Arc<Server>, (cluster, name): NamespaceKey) -> ApiResult<bool> {
    let Some(cluster) = server.cluster(&cluster) else { return Ok(false) };
    let snapshot = server.store.snapshot();
    let Some(entry) = snapshot.get(&cluster.shelf(resource("namespaces")).key("", &name)) else {
        return Ok(false);
    };
    if !entry.meta.is_deleting() {
        furnish(server, &cluster, &name).await?;
        return Ok(false);
    }
    let finalizers = &encoding::read_entry(entry)["spec"]["finalizers"];
    if !finalizers.as_array().is_some_and(|list| list.iter().any(|known| known == CONTENT)) {
        return Ok(false);
    }
    let content = content(&snapshot, &cluster, &name);
    let mut has_more = false;
    for (resource, objects) in content.next() {
        delete_all(server, &cluster, resource, &objects).await?;
        has_more = true;
    }
    if has_more {
        return Ok(true);
    }
    if content.is_empty() {
        finish(server, &cluster, &name).await?;
    } else {
        let now = seconds(server.now());
        let change = |object: &mut Value| content.describe(&mut object["status"], &now);
        own::amend_at(server, resource("namespaces"), entry, change).await?;
    }
    Ok(false)
}

/// What is left in a namespace.
#[derive(Debug, Default)]
struct Content<'s> {
    resources: Vec<(Arc<Resource>, Vec<&'s Arc<Entry>>)>,
}

fn content<'s>(snapshot: &'s Snapshot, cluster: &Cluster, namespace: &str) -> Content<'s> {
    let registry = cluster.registry();
    let stored = registry.stored().into_iter();
    let resources = stored
        .filter(|resource| resource.namespaced && resource.has_verb("delete"))
        .filter_map(|resource| {
            let objects: Vec<_> =
                snapshot.list_namespace(&cluster.shelf(resource), namespace).collect();
            (!objects.is_empty()).then(|| (Arc::clone(resource), objects))
        });
    Content { resources: resources.collect() }
}

impl<'s> Content<'s> {
    fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// What to delete next: pods before everything that they may need to end well.
    fn next(&self) -> Vec<(&Arc<Resource>, Vec<&'s Arc<Entry>>)> {
        let has_first = self.resources.iter().any(|(resource, _)| kinds::of(resource).goes_first());
        let mut left = BATCH;
        let mut next = Vec::new();
        for (resource, objects) in &self.resources {
            if has_first && !kinds::of(resource).goes_first() {
                continue;
            }
            let open = objects.iter().filter(|entry| !entry.meta.is_deleting());
            let some: Vec<_> = open.take(left).copied().collect();
            left -= some.len();
            if !some.is_empty() {
                next.push((resource, some));
            }
        }
        next
    }

    /// Says in a namespace's status what it waits for.
    fn describe(&self, status: &mut Value, now: &str) {
        let mut set = |kind: &str, is_true: bool, reason: &str, message: &str| {
            conditions::set(status, &Condition { kind, is_true, reason, message }, now);
        };
        set(
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "every resource was found",
        );
        set(
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "every version was read",
        );
        set(
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "everything has been asked to go",
        );
        let counts = self.resources.iter().map(|(resource, objects)| {
            format!("{} has {} resource instances", resource.qualified(), objects.len())
        });
        let counts = format!("objects are left: {}", counts.collect::<Vec<_>>().join(", "));
        set("NamespaceContentRemaining", true, "SomeResourcesRemain", &counts);
        let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in self.resources.iter().flat_map(|(_, objects)| objects) {
            for finalizer in &entry.meta.finalizers {
                *finalizers.entry(finalizer).or_default() += 1;
            }
        }
        if finalizers.is_empty() {
            set(
                "NamespaceFinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                "no finalizer holds an object",
            );
        } else {
            let counts = finalizers
                .iter()
                .map(|(name, count)| format!("{name} in {count} resource instances"));
            let counts =
                format!("finalizers hold objects: {}", counts.collect::<Vec<_>>().join(", "));
            set("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", &counts);
        }
    }
}

/// Begins to delete objects of one resource, together.
pub(super) async fn delete_all(
    server: &Arc<Server>,
    cluster: &Arc<Cluster>,
    resource: &Arc<Resource>,
    objects: &[&Arc<Entry>],
) -> ApiResult<()> {
    let work = objects.iter().map(|entry| async move {
        let key = &entry.key;
        let request =
            ResourceRequest::internal(server, cluster, resource, &key.namespace, &key.name)
                .with_verb(Verb::Delete);
        let options =
            DeleteOptions::fenced(Propagation::Background, &entry.meta.uid, entry.modified.0);
        delete_named(&request, &key.name, &options).await
    });
    let mut outcome = Ok(());
    for answer in join_all(work).await {
        match answer {
            Ok(_) => {}
            Err(status) if is_overtaken(&status) => {}
            Err(status) => outcome = Err(status),
        }
    }
    outcome
}

/// Nothing is left that keeps the namespace.
async fn finish(server: &Arc<Server>, cluster: &Arc<Cluster>, name: &str) -> ApiResult<()> {
    let request = ResourceRequest::internal(server, cluster, resource("namespaces"), "", name)
        .with_verb(Verb::Update)
        .on_part("finalize");
    let options = Options::internal();
    let change = |current: &Value| {
        let mut object = current.clone();
        if let Some(Value::Array(finalizers)) = object.pointer_mut("/spec/finalizers") {
            finalizers.retain(|known| known != CONTENT);
        }
        Ok(Wanted { object, is_pinned: false })
    };
    match write::modify(&request, name, &options, change).await {
        Err(status) if is_overtaken(&status) => Ok(()),
        answer => answer.map(|_| ()),
    }
}

fn resource(plural: &str) -> &'static Arc<Resource> {
    builtin().get("", "v1", plural).expect("a built-in resource")
}
