//! An API server in virtual time, with member clusters as its logical clusters. Every write becomes
//! a [`WriteRecord`], in order.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::{CollectionKey, GroupKind, Object};
use convoy_check::Hand;
use convoy_controllers::discovery;
use convoy_controllers::request::{Request, Resource};
use convoy_controllers::response::Response;
use convoy_store::Change;
use jiff::Timestamp;
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::light::Light;
use super::real::Real;
pub use super::server::path_in;
use super::server::{Server, ServerResponse, Written};
use crate::fleet::send::HttpParts;
use crate::seed::Seed;

/// The implementation of the simulated server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// Convoy's own, with everything it does.
    Real,
    /// A small one that does the same to versions, conflicts and deletions, ten times faster.
    Light,
}

/// The author of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    Person,
    /// A control loop under test.
    Controller,
    /// A process that takes or renews the lease of the loops.
    Elector,
    /// Kubelets, the scheduler, the node controller.
    Machines,
    /// The server's own chores.
    Server,
}

/// One applied write.
#[derive(Clone, Debug)]
pub struct WriteRecord {
    pub revision: u64,
    pub at: Timestamp,
    pub by: Author,
    pub change: Change,
    /// As it stands now; of a deletion, as it stood last.
    pub object: Object,
}

impl WriteRecord {
    pub fn is_deletion(&self) -> bool {
        self.change == Change::Deleted
    }

    /// Who wrote, as a watcher tells them apart.
    pub fn hand(&self) -> Hand {
        if self.by == Author::Controller { Hand::Loop } else { Hand::Other }
    }
}

/// The HTTP parts of a request of a control loop.
pub(crate) fn http_parts(request: &Request) -> HttpParts<'_> {
    let Request { method, path, content_type, body } = request;
    HttpParts { method: method.clone(), uri: path.clone(), content_type, body }
}

/// Old records are dropped in batches of at least this size.
const FORGOTTEN_MIN: usize = 1_000;

/// A server, its clock, and the records of all writes.
#[derive(Debug)]
pub struct Cluster {
    server: Box<dyn Server>,
    now: Timestamp,
    records: Vec<WriteRecord>,
    /// How many older records were dropped.
    forgotten: usize,
    /// The resources discovered so far.
    resources: BTreeMap<CollectionKey, Resource>,
}

impl Cluster {
    /// An empty cluster with the namespaces `default` and `kube-node-lease`.
    pub fn new(kind: ServerKind, seed: Seed, now: Timestamp) -> Self {
        match kind {
            ServerKind::Real => Self::on(Box::new(Real::new(seed)), now),
            ServerKind::Light => Self::on(Box::new(Light::new()), now),
        }
    }

    /// A cluster of the small server that has these objects. Their identities, owners, statuses
    /// and times stay as they are.
    pub fn holding(objects: Vec<Object>, now: Timestamp) -> Self {
        Self::on(Box::new(Light::holding(objects, now)), now)
    }

    fn on(server: Box<dyn Server>, now: Timestamp) -> Self {
        let mut cluster =
            Self { server, now, records: Vec::new(), forgotten: 0, resources: BTreeMap::new() };
        cluster.set_up("");
        cluster.collect_garbage();
        cluster
    }

    /// Makes the namespaces that every cluster has.
    pub(crate) fn set_up(&mut self, cluster: &str) {
        for name in ["default", "kube-node-lease"] {
            let body = json!({"metadata": {"name": name}});
            let path = path_in(cluster, "/api/v1/namespaces");
            self.send(&Request::create(&path, body), Author::Server);
        }
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The number of writes so far.
    pub fn written(&self) -> usize {
        self.forgotten + self.records.len()
    }

    /// The records from an index on, as far as they are kept.
    pub fn records(&self, from: usize) -> &[WriteRecord] {
        let from = from.saturating_sub(self.forgotten).min(self.records.len());
        &self.records[from..]
    }

    /// The index of the first record after `version`.
    pub fn index_after(&self, version: u64) -> usize {
        self.forgotten + self.records.partition_point(|record| record.revision <= version)
    }

    /// Drops the records before an index, once there are enough of them.
    pub(crate) fn forget(&mut self, before: usize) {
        let count = before.saturating_sub(self.forgotten).min(self.records.len());
        if count >= FORGOTTEN_MIN {
            self.records.drain(..count);
            self.forgotten += count;
        }
    }

    pub(crate) fn set_clock(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Sends a request and returns the response, at the current instant.
    pub fn send(&mut self, request: &Request, by: Author) -> Response {
        self.respond(&http_parts(request), by).into()
    }

    /// The response without a copy of its body.
    pub(crate) fn respond(&mut self, parts: &HttpParts<'_>, by: Author) -> ServerResponse {
        let response = self.server.send(parts, self.now);
        self.take_in(by);
        response
    }

    /// The object at a path; null if there is none.
    pub fn get(&mut self, path: &str) -> Value {
        let response = self.send(&Request::get(path), Author::Person);
        if response.is_success() { response.body } else { Value::Null }
    }

    /// Runs the garbage collector of the server.
    pub(crate) fn collect_garbage(&mut self) {
        self.server.collect_garbage(self.now);
        self.take_in(Author::Server);
    }

    /// The resource of a kind in a cluster.
    pub(crate) fn resource(&mut self, collection: &CollectionKey) -> Option<Resource> {
        if let Some(known) = self.resources.get(collection) {
            return Some(known.clone());
        }
        let found = self.discover(collection)?;
        self.resources.insert(collection.clone(), found.clone());
        Some(found)
    }

    /// The namespaced kinds of a cluster.
    pub(crate) fn namespaced_kinds(&mut self, cluster: &SmolStr) -> BTreeSet<GroupKind> {
        self.server.namespaced_kinds(cluster)
    }

    fn discover(&mut self, collection: &CollectionKey) -> Option<Resource> {
        let CollectionKey { cluster, kind } = collection;
        if kind.group.is_empty() {
            let list = self.get(&path_in(cluster, "/api/v1"));
            return discovery::find_resource(&list, kind, "v1");
        }
        let group = path_in(cluster, &format!("/apis/{}", kind.group));
        let found = self.get(&group);
        discovery::versions(&found).into_iter().find_map(|version| {
            let list = self.get(&format!("{group}/{version}"));
            discovery::find_resource(&list, kind, &version)
        })
    }

    fn take_in(&mut self, by: Author) {
        let at = self.now;
        for Written { revision, change, object } in self.server.written() {
            self.records.push(WriteRecord { revision, at, by, change, object });
        }
    }
}
