//! The server's state: one store, many logical clusters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use convoy_api::clock::Clock;
use convoy_plan::Dialect;
use convoy_store::{Revision, Shelf, Transaction, WriteError};
use jiff::Timestamp;
use parking_lot::RwLock;
use smol_str::SmolStr;
use tokio::sync::watch;

use crate::access::{Access, Authorization, Rights, Signer, TokenFile};
use crate::admission::{OwnHooks, Webhooks};
use crate::backlog::Backlogs;
use crate::bodies::Bodies;
use crate::charge::Turns;
use crate::lines::Lines;
use crate::logical;
use crate::metrics::Metrics;
use crate::object_meta::{Entry, ObjectMeta, Store};
use crate::published::{self, Published};
use crate::registry::{Registry, Resource};
use crate::status::{ApiResult, Status, chain};
use crate::surroundings::Surroundings;
use crate::traffic::Traffic;

/// Limits of requests and of what they may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub body_bytes_max: usize,
    /// Bytes that the bodies of all requests may take at a time.
    pub bodies_bytes_max: usize,
    /// Bytes that all watches may keep for clients that do not read them.
    pub watch_bytes_max: usize,
    /// Connections that may be open at a time, if the process's file limit is at least twice that.
    pub connections_max: usize,
    pub reads_in_flight_max: usize,
    pub writes_in_flight_max: usize,
    /// Long lists that are made at a time.
    pub long_lists_max: usize,
    /// How long requests in flight may take during a shutdown.
    pub shutdown_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 3 << 20,
            bodies_bytes_max: 256 << 20,
            watch_bytes_max: 256 << 20,
            connections_max: 4_096,
            reads_in_flight_max: 400,
            writes_in_flight_max: 200,
            long_lists_max: 16,
            shutdown_timeout: Duration::from_mins(1),
        }
    }
}

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
    pub(crate) own_hooks: OwnHooks,
    pub(crate) turns: Turns,
    clusters: RwLock<BTreeMap<SmolStr, Arc<Cluster>>>,
    /// Counts how often a logical cluster came or went.
    comings: watch::Sender<u64>,
    /// Whether those who did the chores have gone.
    untended: AtomicBool,
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
    pub(crate) webhooks: Webhooks,
    /// Held while definitions are looked at, so that the kinds are those of the newest ones.
    pub(crate) definitions: tokio::sync::Mutex<()>,
}

impl Cluster {
    pub fn new(name: &str) -> Self {
        let mut registry = Registry::over_builtin();
        if name.is_empty() {
            registry.insert(logical::resource());
        }
        Self {
            name: SmolStr::new(name),
            registry: ArcSwap::from_pointee(registry),
            published: published::Shelf::default(),
            definitions: tokio::sync::Mutex::default(),
            rights: Rights::default(),
            webhooks: Webhooks::new(name),
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
    pub fn new(store: Store, surroundings: Arc<dyn Surroundings>, limits: Limits) -> Self {
        let first = Arc::new(Cluster::new(""));
        let clusters = RwLock::new(BTreeMap::from([(SmolStr::default(), first)]));
        let signer = Signer::generate().expect("the machine has random numbers");
        let access = Access::new(Authorization::default(), TokenFile::default(), signer);
        let server = Self {
            metrics: Metrics::default(),
            own_hooks: OwnHooks::default(),
            traffic: Traffic::new(&limits),
            bodies: Bodies::new(limits.bodies_bytes_max),
            backlogs: Backlogs::new(limits.watch_bytes_max),
            lines: Lines::default(),
            turns: Turns::default(),
            store,
            surroundings,
            limits,
            access,
            clusters,
            comings: watch::Sender::new(0),
            untended: AtomicBool::new(false),
            pages_since: AtomicU64::new(0),
            ending: watch::Sender::new(false),
        };
        logical::load(&server);
        server
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

    /// The same server, with the rules of these dialects about their own kinds built in.
    #[must_use]
    pub fn with_own_webhooks(self, dialects: &[&'static dyn Dialect]) -> Self {
        Self { own_hooks: OwnHooks::of_dialects(dialects), ..self }
    }

    /// Ends every watch cleanly, so that clients reconnect to the next server.
    pub fn end_watches(&self) {
        self.ending.send_replace(true);
    }

    pub fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Whether the server has ceased to look after what it holds.
    pub fn is_untended(&self) -> bool {
        self.untended.load(Ordering::Relaxed)
    }

    pub(crate) fn leave_untended(&self) {
        self.untended.store(true, Ordering::Relaxed);
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
