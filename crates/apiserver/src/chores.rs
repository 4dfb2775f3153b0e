//! What the server does of itself: it collects garbage, empties namespaces and definitions that
//! go, furnishes new namespaces, counts what quotas limit, signs certificates, checks the types of
//! policies, lets events expire, removes logical clusters, and forgets old history.
//!
//! All of it works on the committed state: what is to be done is found in the store at start
//! and in its events from then on, so nothing is lost when the process ends. Every step is
//! bounded, and repeating one changes nothing. There is no timer in here: the caller says when
//! to look, by a task of the runtime or step by step.

mod certificates;
mod clusters;
mod collect;
mod definitions;
mod expiry;
mod garbage;
mod history;
mod namespaces;
mod policies;
mod queue;
mod quotas;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use convoy_store::{Change, Events, Watch};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::task::JoinHandle;

use crate::object_meta::{Entry, ObjectMeta, Snapshot};
use crate::server::Server;
use crate::status::{ApiResult, Status};

use clusters::Clusters;
use collect::Collector;
use definitions::Definitions;
use expiry::Expiry;
use history::History;
use namespaces::Namespaces;
use queue::ChangedObjects;
use quotas::Quotas;

/// Objects that one step deletes at most.
const BATCH: usize = 128;

/// How long the task sleeps at most: clocks may be set.
const SLEEP_MAX: Duration = Duration::from_secs(30);

type Event = convoy_store::Event<ObjectMeta>;

/// The chores of one server.
#[derive(Debug)]
pub struct Chores {
    server: Arc<Server>,
    watch: Watch<ObjectMeta>,
    collector: Collector,
    namespaces: Namespaces,
    quotas: Quotas,
    certificates: ChangedObjects,
    policies: ChangedObjects,
    definitions: Definitions,
    expiry: Expiry,
    clusters: Clusters,
    history: History,
}

/// Does the chores in a task, until `shutdown`. What is to be done is known when this returns.
pub fn start(
    server: Arc<Server>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let mut chores = Chores::new(&server);
    let guard = ChoresGuard(server);
    tokio::spawn(async move {
        let _guard = guard;
        tokio::select! {
            () = shutdown => {}
            () = chores.run() => {}
        }
    })
}

/// Reports, when it is dropped, that nobody does the chores any more: after a panic too.
struct ChoresGuard(Arc<Server>);

impl Drop for ChoresGuard {
    fn drop(&mut self) {
        self.0.stop_chores();
    }
}

/// Does everything that can be done now, from scratch.
pub async fn settle(server: &Arc<Server>) {
    Chores::new(server).settle().await;
}

impl Chores {
    /// Finds in the store what is to be done.
    pub fn new(server: &Arc<Server>) -> Self {
        let snapshot = server.store.snapshot();
        let counts = |name| server.metrics.queue(name);
        let mut chores = Self {
            server: Arc::clone(server),
            watch: server.store.watch_everything(snapshot.revision()),
            collector: Collector::new(counts("garbage_collector_attempt_to_delete")),
            namespaces: Namespaces::new(counts("namespace")),
            quotas: Quotas::new(counts("resourcequota_primary")),
            certificates: ChangedObjects::new(certificates::SHELF, counts("certificate")),
            policies: ChangedObjects::new(
                policies::SHELF,
                counts("validating_admission_policy_status"),
            ),
            definitions: Definitions::new(counts("crd_finalizer")),
            expiry: Expiry::default(),
            clusters: Clusters::new(counts("logical_clusters")),
            history: History::default(),
        };
        chores.begin(&snapshot);
        chores
    }

    /// Works until there is nothing left to do now.
    pub async fn settle(&mut self) {
        while self.step().await {}
    }

    /// One bounded piece of work; whether there was any.
    pub fn step(&mut self) -> BoxFuture<'_, bool> {
        Box::pin(self.work())
    }

    async fn work(&mut self) -> bool {
        let events = self.watch.read();
        let Some(mut is_busy) = self.take(events) else { return false };
        crate::clusters::definitions::settle_defaults(&self.server);
        let server = &self.server;
        is_busy |= self.clusters.step(server).await;
        is_busy |= self.definitions.step(server).await;
        is_busy |= self.namespaces.step(server).await;
        is_busy |= self.quotas.step(server).await;
        let now = server.now();
        let signed = self.certificates.queue.work(now, |key| certificates::sign(server, key));
        is_busy |= signed.await;
        is_busy |= self.policies.queue.work(now, |key| policies::check(server, key)).await;
        is_busy |= self.collector.step(server).await;
        is_busy |= self.expiry.step(server).await;
        self.history.step(server);
        is_busy
    }

    /// When there is something to do, should nothing change before then.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let times = [
            self.clusters.queue.wake_at(),
            self.definitions.queue.wake_at(),
            self.namespaces.queue.wake_at(),
            self.quotas.queue.wake_at(),
            self.certificates.queue.wake_at(),
            self.policies.queue.wake_at(),
            self.collector.wake_at(),
            self.expiry.wake_at(),
            self.history.wake_at(),
        ];
        times.into_iter().flatten().min()
    }

    async fn run(&mut self) {
        loop {
            while self.step().await {
                tokio::task::yield_now().await;
            }
            let pause = tokio::time::sleep(self.pause());
            tokio::select! {
                () = pause => {}
                events = poll_fn(|context| self.watch.poll_read(context)) => {
                    if self.take(events).is_none() {
                        return;
                    }
                }
            }
        }
    }

    fn pause(&self) -> Duration {
        let until = self.wake_at().map(|at| at.duration_since(self.server.now()));
        let until = until.map(|left| Duration::try_from(left).unwrap_or(Duration::ZERO));
        until.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// Notes what has happened; whether anything has. None: the store is shut down.
    fn take(&mut self, events: Events<ObjectMeta>) -> Option<bool> {
        match events {
            Ok(None) => None,
            Ok(Some(events)) => {
                for event in &events {
                    self.observe(event);
                }
                Some(!events.is_empty())
            }
            Err(compacted) => {
                tracing::warn!(%compacted, "fell behind the event log; resyncing");
                *self = Self::new(&Arc::clone(&self.server));
                Some(true)
            }
        }
    }

    fn begin(&mut self, snapshot: &Snapshot) {
        for shelf in snapshot.shelves() {
            for entry in snapshot.list(shelf) {
                self.expiry.begin(entry);
                self.observe(&found(entry));
            }
        }
    }

    fn observe(&mut self, event: &Event) {
        self.collector.observe(&self.server, event);
        self.namespaces.observe(event);
        self.quotas.observe(&self.server, event);
        self.certificates.observe(event);
        self.policies.observe(event);
        self.definitions.observe(event);
        self.expiry.observe(&self.server, event);
        self.clusters.observe(&self.server, event);
    }
}

/// An object that was there before, as if it had just come.
fn found(entry: &Arc<Entry>) -> Event {
    Event {
        revision: entry.modified,
        change: Change::Created,
        entry: Arc::clone(entry),
        previous: None,
    }
}

/// Whether a piece of work is to be tried again later. What has changed or gone meanwhile is
/// looked at again by its event.
fn is_to_repeat<T>(answer: &ApiResult<T>) -> bool {
    match answer {
        Ok(_) => false,
        Err(status) => !is_overtaken(status),
    }
}

fn is_overtaken(status: &Status) -> bool {
    matches!(status.code, 404 | 409)
}

#[cfg(test)]
mod tests;
