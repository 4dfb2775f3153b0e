//! Store metrics: latencies of the backend, and the number of objects.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use convoy_store::backend::{Loaded, Record};
use convoy_store::{Backend, BackendError, Revision};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::published;
use crate::object_meta::Store;

/// Counts about the store. Cloning shares.
#[derive(Clone, Debug)]
pub struct StoreMetrics {
    commit_seconds: Histogram,
    /// The same under the name that dashboards know.
    requests: Family<Operation, Histogram, fn() -> Histogram>,
    batch_size: Histogram,
    sync_seconds: Histogram,
    load_seconds: Histogram,
    log_bytes: Gauge,
    compaction_seconds: Histogram,
    history_events: Gauge,
    history_bytes: Gauge,
    size_bytes: Gauge,
    revision: Counter<u64, AtomicU64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
    r#type: &'static str,
}

fn seconds() -> Histogram {
    Histogram::new([0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0])
}

impl StoreMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let timed: fn() -> Histogram = seconds;
        let mut time = |name: &str, help: &str| published(registry, name, help, seconds());
        let commit_seconds =
            time("convoy_store_commit_seconds", "Time that a batch of writes took to be durable");
        let compaction_seconds =
            time("convoy_store_compaction_seconds", "Time that it took to forget old history");
        let sync_seconds =
            time("convoy_store_fsync_seconds", "Time that the disk took to keep a batch for good");
        let load_seconds =
            time("convoy_store_snapshot_seconds", "Time that it took to load what is stored");
        let mut held = |name: &str, help: &str| published(registry, name, help, Gauge::default());
        let history_events =
            held("convoy_store_history_events", "Old versions that are kept for watches and lists");
        let history_bytes = held("convoy_store_history_bytes", "What the kept versions take");
        let log_bytes = held("convoy_store_log_bytes", "What a start would read again of the log");
        let size_bytes = held("apiserver_storage_size_bytes", "What the stored objects take");
        let sizes = Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
        let name = "convoy_store_batch_size";
        let batch_size = published(registry, name, "Writes that became durable together", sizes);
        let name = "etcd_request_duration_seconds";
        let family = Family::new_with_constructor(timed);
        let requests = published(registry, name, "Time that the store took", family);
        let name = "apiserver_watch_cache_events_dispatched";
        let counter = Counter::default();
        let revision = published(registry, name, "Events that watches could see", counter);
        Self {
            commit_seconds,
            requests,
            batch_size,
            sync_seconds,
            load_seconds,
            log_bytes,
            compaction_seconds,
            history_events,
            history_bytes,
            size_bytes,
            revision,
        }
    }

    /// Reads off what the store holds.
    pub(super) fn look_at(&self, store: &Store) {
        let snapshot = store.snapshot();
        let values = snapshot.shelves().flat_map(|shelf| snapshot.list(shelf));
        let size: usize = values.map(|entry| entry.value.len()).sum();
        let (events, bytes) = store.history();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.size_bytes.set(number(size));
        self.history_events.set(number(events));
        self.history_bytes.set(number(bytes));
        self.revision.inner().store(snapshot.revision().0, std::sync::atomic::Ordering::Relaxed);
    }

    fn took(&self, operation: &'static str, begun: Instant) -> f64 {
        let seconds = begun.elapsed().as_secs_f64();
        let label = Operation { operation, r#type: "store" };
        self.requests.get_or_create(&label).observe(seconds);
        seconds
    }
}

/// A backend whose work is timed.
#[derive(Debug)]
pub struct Metered<B> {
    backend: B,
    metrics: StoreMetrics,
}

impl<B> Metered<B> {
    pub fn new(backend: B, metrics: StoreMetrics) -> Self {
        Self { backend, metrics }
    }
}

impl<B: Backend> Backend for Metered<B> {
    fn commit(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        let begun = Instant::now();
        let done = self.write(batch).and_then(|()| self.sync());
        self.metrics.commit_seconds.observe(self.metrics.took("txn", begun));
        self.metrics.batch_size.observe(f64::from(u32::try_from(batch.len()).unwrap_or(u32::MAX)));
        self.metrics.log_bytes.set(i64::try_from(self.log_bytes()).unwrap_or(i64::MAX));
        done
    }

    fn write(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        self.backend.write(batch)
    }

    fn sync(&mut self) -> Result<(), BackendError> {
        let begun = Instant::now();
        let done = self.backend.sync();
        self.metrics.sync_seconds.observe(begun.elapsed().as_secs_f64());
        done
    }

    fn log_bytes(&self) -> u64 {
        self.backend.log_bytes()
    }

    fn load(&mut self) -> Result<Loaded, BackendError> {
        let begun = Instant::now();
        let loaded = self.backend.load();
        self.metrics.load_seconds.observe(self.metrics.took("load", begun));
        self.metrics.log_bytes.set(i64::try_from(self.log_bytes()).unwrap_or(i64::MAX));
        loaded
    }

    fn compact(&mut self, revision: Revision) -> Result<(), BackendError> {
        let begun = Instant::now();
        let done = self.backend.compact(revision);
        self.metrics.compaction_seconds.observe(self.metrics.took("compact", begun));
        done
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        self.backend.flush()
    }

    fn seal(&mut self) -> Result<(), BackendError> {
        self.backend.seal()
    }

    fn recover(&mut self, published: Revision) -> Result<Vec<Record>, BackendError> {
        self.backend.recover(published)
    }
}
