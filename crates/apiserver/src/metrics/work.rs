//! Work queue metrics of the built-in controllers, under client-go's names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::published;

/// Counts about every queue.
#[derive(Debug)]
pub(super) struct Queues {
    depth: Family<Name, Gauge>,
    adds: Family<Name, Counter>,
    retries: Family<Name, Counter>,
    waited: Family<Name, Histogram, fn() -> Histogram>,
    worked: Family<Name, Histogram, fn() -> Histogram>,
    unfinished: Family<Name, Gauge<f64, AtomicU64>>,
    longest: Family<Name, Gauge<f64, AtomicU64>>,
    known: Mutex<BTreeMap<&'static str, Shared>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Name {
    name: &'static str,
}

/// What was taken from a queue and is not done.
#[derive(Debug, Default)]
struct Running {
    count: u32,
    /// Since when; all of it is taken together.
    since: Option<Instant>,
}

type Shared = Arc<Mutex<Running>>;

/// Counts about one queue. Cloning shares; the default counts for nobody.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
    running: Shared,
}

/// Ten times longer each, as controllers of Kubernetes have it.
fn seconds() -> Histogram {
    Histogram::new([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1_000.0])
}

impl Queues {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let timed: fn() -> Histogram = seconds;
        let times = || Family::new_with_constructor(timed);
        Self {
            depth: published(registry, "workqueue_depth", "What waits", Family::default()),
            adds: published(registry, "workqueue_adds", "What came to wait", Family::default()),
            retries: published(registry, "workqueue_retries", "What failed", Family::default()),
            waited: published(registry, "workqueue_queue_duration_seconds", "Waits", times()),
            worked: published(registry, "workqueue_work_duration_seconds", "Work", times()),
            unfinished: published(
                registry,
                "workqueue_unfinished_work_seconds",
                "How long all that is being worked on has taken so far",
                Family::default(),
            ),
            longest: published(
                registry,
                "workqueue_longest_running_processor_seconds",
                "How long the oldest work has taken so far",
                Family::default(),
            ),
            known: Mutex::default(),
        }
    }

    /// The counts of a queue, the same ones for the same name.
    pub(super) fn of(&self, name: &'static str) -> Work {
        let running = Arc::clone(self.known.lock().entry(name).or_default());
        let name = Name { name };
        Work {
            depth: self.depth.get_or_create(&name).clone(),
            adds: self.adds.get_or_create(&name).clone(),
            retries: self.retries.get_or_create(&name).clone(),
            waited: self.waited.get_or_create(&name).clone(),
            worked: self.worked.get_or_create(&name).clone(),
            running,
        }
    }

    /// Reads off how long the work that is under way has taken.
    pub(super) fn look(&self) {
        for (name, running) in &*self.known.lock() {
            let running = running.lock();
            let seconds = running.since.map_or(0.0, |since| since.elapsed().as_secs_f64());
            let name = Name { name };
            self.longest.get_or_create(&name).set(seconds);
            self.unfinished.get_or_create(&name).set(seconds * f64::from(running.count));
        }
    }
}

impl Default for Work {
    fn default() -> Self {
        Self {
            depth: Gauge::default(),
            adds: Counter::default(),
            retries: Counter::default(),
            waited: seconds(),
            worked: seconds(),
            running: Arc::default(),
        }
    }
}

impl Work {
    /// Something came; so many wait now.
    pub(crate) fn added(&self, waiting: usize) {
        self.adds.inc();
        self.waiting(waiting);
    }

    fn waiting(&self, count: usize) {
        self.depth.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Some were taken that had waited since then; so many are left.
    pub(crate) fn taken(&self, since: &[Instant], left: usize) {
        if since.is_empty() {
            return;
        }
        for instant in since {
            self.waited.observe(instant.elapsed().as_secs_f64());
        }
        self.waiting(left);
        let mut running = self.running.lock();
        running.count = u32::try_from(since.len()).unwrap_or(u32::MAX);
        running.since = Some(Instant::now());
    }

    /// One of them is done, well or not.
    pub(crate) fn done(&self, has_failed: bool) {
        if has_failed {
            self.retries.inc();
        }
        let mut running = self.running.lock();
        let Some(since) = running.since else { return };
        self.worked.observe(since.elapsed().as_secs_f64());
        running.count = running.count.saturating_sub(1);
        if running.count == 0 {
            running.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_and_what_is_worked_on_is_counted() {
        let mut registry = Registry::default();
        let queues = Queues::register(&mut registry);
        let work = queues.of("namespace");
        let since = Instant::now();
        work.added(1);
        work.added(2);
        let text = || {
            queues.look();
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text
        };
        assert!(text().contains("workqueue_depth{name=\"namespace\"} 2\n"), "{}", text());
        work.taken(&[since], 1);
        work.done(true);
        for line in [
            "workqueue_depth{name=\"namespace\"} 1\n",
            "workqueue_adds_total{name=\"namespace\"} 2\n",
            "workqueue_retries_total{name=\"namespace\"} 1\n",
            "workqueue_queue_duration_seconds_count{name=\"namespace\"} 1\n",
            "workqueue_work_duration_seconds_count{name=\"namespace\"} 1\n",
            "workqueue_unfinished_work_seconds{name=\"namespace\"} 0.0\n",
            "workqueue_longest_running_processor_seconds{name=\"namespace\"} 0.0\n",
        ] {
            assert!(text().contains(line), "{line}\n{}", text());
        }
    }
}
