//! Metrics of the server, under the names that Kubernetes dashboards use.

mod checks;
mod process;
mod stored;
mod work;

use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::audit::Counts;
use crate::object_meta::Store;
use crate::registry::Resource;
use crate::request_info::RequestInfo;
use checks::Checks;
use process::Process;
use work::Queues;

pub use stored::{Metered, StoreMetrics};
pub(crate) use work::Work;

/// Everything that is counted as requests go by.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Asked, Histogram, fn() -> Histogram>,
    in_flight: Family<Kind, Gauge>,
    long_running: Gauge,
    watch_events: Family<Followed, Counter>,
    watch_sizes: Family<Followed, Histogram, fn() -> Histogram>,
    objects: Family<Watched, Gauge>,
    audit_events: Counter,
    audit_errors: Family<Plugin, Counter>,
    webhooks: Family<Called, Histogram, fn() -> Histogram>,
    pub(crate) store: StoreMetrics,
    queues: Queues,
    process: Process,
    pub(crate) checks: Checks,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: String,
    component: String,
    dry_run: String,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    verb: String,
    group: String,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    request_kind: &'static str,
}

/// What writes audit events: the log alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Plugin {
    plugin: &'static str,
}

/// Labels of a webhook call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Called {
    name: String,
    operation: &'static str,
    r#type: &'static str,
    rejected: String,
}

/// A resource, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Watched {
    resource: String,
}

/// A resource, as it is watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Followed {
    group: String,
    version: String,
    resource: String,
}

/// Counts what one watch sends.
#[derive(Debug)]
pub(crate) struct Sent {
    events: Counter,
    sizes: Histogram,
}

impl Sent {
    pub(crate) fn event(&self, bytes: usize) {
        self.events.inc();
        self.sizes.observe(f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)));
    }
}

/// A request in flight: counted until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Has a count published, and gives it to whoever counts.
fn published<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// What Prometheus reads of a registry.
fn text_of(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)
        .expect("writing to a string does not fail");
    text
}

fn durations() -> Histogram {
    Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0])
}

/// From one KiB to 128 KiB, each twice the one before.
fn sizes() -> Histogram {
    Histogram::new((10..18).map(|power| f64::from(1_u32 << power)))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let all = &mut registry;
        let requests = published(all, "apiserver_request", "Requests answered", Family::default());
        let timed: fn() -> Histogram = durations;
        let name = "apiserver_request_duration_seconds";
        let family = Family::new_with_constructor(timed);
        let durations = published(all, name, "Time from a request to its response", family);
        let name = "apiserver_current_inflight_requests";
        let in_flight = published(all, name, "Requests being answered", Family::default());
        let name = "apiserver_longrunning_requests";
        let long_running = published(all, name, "Watches that are open", Gauge::default());
        let name = "apiserver_watch_events";
        let watch_events = published(all, name, "Events sent to watches", Family::default());
        let sized: fn() -> Histogram = sizes;
        let name = "apiserver_watch_events_sizes";
        let family = Family::new_with_constructor(sized);
        let watch_sizes = published(all, name, "Bytes of events sent to watches", family);
        let name = "apiserver_resource_objects";
        let objects = published(all, name, "Objects that are stored", Family::default());
        let name = "apiserver_storage_objects";
        let objects = published(all, name, "The same, under its older name", objects);
        let name = "apiserver_audit_event";
        let audit_events =
            published(all, name, "Audit events handed to the log", Counter::default());
        let name = "apiserver_audit_error";
        let audit_errors = published(all, name, "Audit events that were lost", Family::default());
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        let family = Family::new_with_constructor(timed);
        let webhooks = published(all, name, "Time that webhooks took to answer", family);
        let store = StoreMetrics::register(all);
        let queues = Queues::register(all);
        let process = Process::register(all);
        Self {
            registry,
            requests,
            durations,
            in_flight,
            long_running,
            watch_events,
            watch_sizes,
            objects,
            audit_events,
            audit_errors,
            webhooks,
            store,
            queues,
            process,
            checks: Checks::default(),
        }
    }
}

impl Metrics {
    pub(crate) fn begin(&self, mutates: bool) -> InFlight {
        let request_kind = if mutates { "mutating" } else { "readOnly" };
        let gauge = self.in_flight.get_or_create(&Kind { request_kind }).clone();
        gauge.inc();
        InFlight(gauge)
    }

    /// Counts a watch for as long as it is open.
    pub(crate) fn watch_opened(&self) -> InFlight {
        self.long_running.inc();
        InFlight(self.long_running.clone())
    }

    /// Counts the events that a watch of a resource sends.
    pub(crate) fn events_of(&self, resource: &Resource) -> Sent {
        let followed = Followed {
            group: resource.group.to_string(),
            version: resource.version.to_string(),
            resource: resource.plural.to_string(),
        };
        Sent {
            events: self.watch_events.get_or_create(&followed).clone(),
            sizes: self.watch_sizes.get_or_create(&followed).clone(),
        }
    }

    /// Counts what waits in a queue of the chores.
    pub(crate) fn queue(&self, name: &'static str) -> Work {
        self.queues.of(name)
    }

    pub(crate) fn answered(&self, info: &RequestInfo, dry_run: bool, code: u16, took: Duration) {
        let target = info.target.clone().unwrap_or_default();
        let scope = match (&info.target, target.name.is_empty(), target.namespace.is_empty()) {
            (None, ..) => "",
            (_, false, _) => "resource",
            (_, true, false) => "namespace",
            (_, true, true) => "cluster",
        };
        let verb = if info.verb.is_of_many() {
            info.verb.as_str().to_uppercase()
        } else {
            method(info.verb.as_str()).to_owned()
        };
        let request = Request {
            verb: verb.clone(),
            group: target.group.to_string(),
            version: target.version.to_string(),
            resource: target.resource.to_string(),
            subresource: target.subresource.to_string(),
            scope: scope.to_owned(),
            component: "apiserver".to_owned(),
            dry_run: if dry_run { "All" } else { "" }.to_owned(),
            code,
        };
        self.requests.get_or_create(&request).inc();
        if !info.is_long_running() {
            let Request { group, resource, .. } = request;
            let asked = Asked { verb, group, resource };
            self.durations.get_or_create(&asked).observe(took.as_secs_f64());
        }
    }

    /// Notes how long a webhook took, whether it changes or checks, and whether it said no.
    pub(crate) fn webhook_called(
        &self,
        name: &str,
        operation: &'static str,
        r#type: &'static str,
        rejected: bool,
        took: Duration,
    ) {
        let (name, rejected) = (name.to_owned(), rejected.to_string());
        let called = Called { name, operation, r#type, rejected };
        self.webhooks.get_or_create(&called).observe(took.as_secs_f64());
    }

    /// The text that Prometheus reads.
    pub(crate) fn text(&self, store: &Store, audit: Counts) -> String {
        let snapshot = store.snapshot();
        // Counted where they are written; only shown here.
        self.audit_events.inner().store(audit.written + audit.dropped, Ordering::Relaxed);
        let errors = self.audit_errors.get_or_create(&Plugin { plugin: "log" });
        errors.inner().store(audit.dropped, Ordering::Relaxed);
        drop(errors);
        self.objects.clear();
        for shelf in snapshot.shelves() {
            let resource = match shelf.resource.split_once('/') {
                Some((group, plural)) => format!("{plural}.{group}"),
                None => shelf.resource.to_string(),
            };
            let count = i64::try_from(snapshot.count(shelf)).unwrap_or(i64::MAX);
            self.objects.get_or_create(&Watched { resource }).inc_by(count);
        }
        self.store.look_at(store);
        self.queues.look();
        self.process.look();
        text_of(&self.registry)
    }
}

fn method(verb: &str) -> &str {
    match verb {
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "get" => "GET",
        other => other,
    }
}

#[cfg(test)]
mod tests;
