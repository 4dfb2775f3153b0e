//! The server's state: one store, many logical clusters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use convoy_api::clock::Clock;
use convoy_store::{Revision, Shelf, Transaction, WriteError};
use jiff::Timestamp;
use parking_lot::RwLock;
use smol_str::SmolStr;
use tokio::sync::watch;

use crate::access::{Access, Authorization, Guard, Rights, Signer, TokenFile};
use crate::attached::Attached;
use crate::backlog::Backlogs;
use crate::bodies::Bodies;
use crate::lines::Lines;
use crate::metrics::Metrics;
use crate::object_meta::{Entry, ObjectMeta, Store};
use crate::published::{self, Published};
use crate::quota_locks::QuotaLocks;
use crate::registry::{Registry, Resource};
use crate::status::{ApiResult, Status, chain};
use crate::surroundings::Surroundings;
use crate::traffic::Traffic;

pub use crate::limits::Limits;

/// Everything that requests share.
#[derive(Debug)]
pub struct Server {
    pub store: Store,
    pub surroundings: Arc<dyn Surroundings>,
    pub limits: Limits,
    pub access: Access,
    pub metrics: Metrics,
    pub(crate) traffic: Traffic,
    pub(crate) bodies: Bodies,
    pub(crate) backlogs: Arc<Backlogs>,
    pub(crate) lines: Lines,
    /// What layers above this one keep here.
    pub(crate) attached: Attached,
    pub(crate) quota_locks: QuotaLocks,
    clusters: RwLock<BTreeMap<SmolStr, Arc<Cluster>>>,
    /// Counts how often a logical cluster came or went.
    comings: watch::Sender<u64>,
    /// Whether the chores have stopped.
    chores_stopped: AtomicBool,
    /// Lists that began before this revision take no further page.
    pages_since: AtomicU64,
    /// Whether watches are to end, because the server does.
    ending: watch::Sender<bool>,
}

/// One logical cluster: an API server of its own in all that clients can see.
#[derive(Debug)]
pub struct Cluster {
    /// Empty for the first one.
    pub name: SmolStr,
    registry: ArcSwap<Registry>,
    published: published::Shelf,
    pub(crate) rights: Rights,
    /// What layers above this one keep here.
    pub(crate) attached: Attached,
    /// Held while definitions are looked at, so that the kinds are those of the newest ones.
    pub(crate) definitions: tokio::sync::Mutex<()>,
}

impl Cluster {
    pub fn new(name: &str) -> Self {
        Self {
            name: SmolStr::new(name),
            registry: ArcSwap::from_pointee(Registry::over_builtin()),
            published: published::Shelf::default(),
            definitions: tokio::sync::Mutex::default(),
            rights: Rights::default(),
            attached: Attached::default(),
        }
    }

    pub fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }

    /// Makes a new set of kinds visible to the requests that follow.
    pub fn set_registry(&self, registry: Registry) {
        self.registry.store(Arc::new(registry));
    }

    /// What clients learn about the kinds that are served now.
    pub(crate) fn published(&self) -> Arc<Published> {
        self.published.about(self.registry())
    }

    pub fn shelf(&self, resource: &Resource) -> Shelf {
        Shelf { cluster: self.name.clone(), resource: resource.shelf.clone() }
    }
}

impl Server {
    /// A server that knows of the first cluster alone, and of no definitions in it.
    pub(crate) fn without_clusters(
        store: Store,
        surroundings: Arc<dyn Surroundings>,
        limits: Limits,
    ) -> Self {
        let first = Arc::new(Cluster::new(""));
        let clusters = RwLock::new(BTreeMap::from([(SmolStr::default(), first)]));
        let signer = Signer::generate().expect("the machine has random numbers");
        let access = Access::new(Authorization::default(), TokenFile::default(), signer);
        Self {
            metrics: Metrics::default(),
            attached: Attached::default(),
            traffic: Traffic::new(&limits),
            bodies: Bodies::new(limits.bodies_bytes_max),
            backlogs: Backlogs::new(limits.watch_bytes_max),
            lines: Lines::default(),
            quota_locks: QuotaLocks::default(),
            store,
            surroundings,
            limits,
            access,
            clusters,
            comings: watch::Sender::new(0),
            chores_stopped: AtomicBool::new(false),
            pages_since: AtomicU64::new(0),
            ending: watch::Sender::new(false),
        }
    }

    /// The same server under other rules of access.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// The same server, counting together with others: with its store.
    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    /// Access to one of the clusters.
    pub(crate) fn guard<'s>(&'s self, cluster: &'s Cluster) -> Guard<'s> {
        Guard {
            access: &self.access,
            store: &self.store,
            surroundings: &*self.surroundings,
            cluster: &cluster.name,
            rights: &cluster.rights,
        }
    }

    /// Ends every watch cleanly, so that clients reconnect to the next server.
    pub fn end_watches(&self) {
        self.ending.send_replace(true);
    }

    pub fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Whether nobody does the chores any more.
    pub fn has_stopped_chores(&self) -> bool {
        self.chores_stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_chores(&self) {
        self.chores_stopped.store(true, Ordering::Relaxed);
    }

    /// Lets lists expire that began before `revision`.
    pub(crate) fn expire_pages(&self, revision: Revision) {
        self.pages_since.fetch_max(revision.0, Ordering::Relaxed);
    }

    /// Whether a list that began at `revision` takes no further page.
    pub(crate) fn has_expired(&self, revision: Revision) -> bool {
        revision.0 < self.pages_since.load(Ordering::Relaxed)
    }

    /// Done when watches are to end.
    pub(crate) fn ending(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ending = self.ending.subscribe();
        async move {
            // The sender lives in the server; if it is gone, so is everything.
            drop(ending.wait_for(|ending| *ending).await);
        }
    }

    pub fn clock(&self) -> Clock {
        self.surroundings.clock()
    }

    pub fn now(&self) -> Timestamp {
        self.surroundings.now()
    }

    pub fn cluster(&self, name: &str) -> Option<Arc<Cluster>> {
        self.clusters.read().get(name).cloned()
    }

    pub fn clusters(&self) -> Vec<Arc<Cluster>> {
        self.clusters.read().values().cloned().collect()
    }

    pub fn add_cluster(&self, name: &str) -> Arc<Cluster> {
        let mut clusters = self.clusters.write();
        let cluster = clusters.entry(SmolStr::new(name)).or_insert_with(|| {
            self.comings.send_modify(|count| *count += 1);
            Arc::new(Cluster::new(name))
        });
        Arc::clone(cluster)
    }

    pub fn remove_cluster(&self, name: &str) {
        if self.clusters.write().remove(name).is_some() {
            self.comings.send_modify(|count| *count += 1);
        }
    }

    /// Changes whenever a logical cluster comes or goes.
    pub fn comings(&self) -> watch::Receiver<u64> {
        self.comings.subscribe()
    }

    /// Commits writes that belong together. A lost race comes back as `None`.
    pub(crate) async fn commit(
        &self,
        transaction: Transaction<ObjectMeta>,
    ) -> ApiResult<Option<Vec<Arc<Entry>>>> {
        match self.store.submit(transaction).await {
            Ok(written) => Ok(Some(written.entries)),
            Err(WriteError::Conflict(_)) => Ok(None),
            Err(WriteError::Busy) => {
                Err(Status::too_many_requests("too many requests, please try again later", 1))
            }
            Err(WriteError::Key(error)) => Err(Status::bad_request(error.to_string())),
            Err(error @ WriteError::Failed(_)) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "write to the store failed"
                );
                Err(Status::internal(chain(&error)))
            }
            Err(error @ WriteError::Closed) => Err(Status::unavailable(error.to_string())),
        }
    }
}
