//! The reconciler: events go into the cache, the rollouts they affect into the work queue, and a
//! rollout taken from the queue gets a decision and with it a [`StepExecution`].
//!
//! There is no clock here, no task and no connection: `run` drives it against an API server in
//! real time, a simulation in virtual time and in any order of events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use convoy_api::ObjectKey;
use convoy_api::clock::Clock;
use convoy_plan::series::{self, Increment};
use convoy_plan::{Action, Denial, Diagnostic, Dialect, Event, Step, Warned};
use jiff::Timestamp;

use crate::cache::{Cache, CacheEvent};
use crate::events::ObjectEvent;
use crate::execution::{FinishedStep, StepExecution, StepResult};
use crate::failures::Failures;
use crate::fence::Fence;
use crate::lanes::Lanes;
use crate::log::DecisionLog;
use crate::metrics::{self, Decision, Holds, Metrics};
use crate::projection::Projections;
use crate::request;
use crate::rollout::Rollout;
use crate::watches::WatchChange;
use crate::work_queue::WorkQueue;

/// Is told every decision, what it was made from, and the time that it was made for.
pub type DecisionObserver = Box<dyn FnMut(&Step, &Cache, Timestamp) + Send>;

/// Which dialects run, and how.
pub struct Settings {
    pub dialects: Vec<&'static dyn Dialect>,
    /// Decide and report, but write nothing.
    pub observe: bool,
    /// The most rollouts whose writes are in flight at once, in each cluster.
    pub concurrency: usize,
    pub decision_log: Option<DecisionLog>,
    pub metrics: Arc<Metrics>,
    /// Whether this process may write, for a process with leader election.
    pub fence: Fence,
    /// The time that decisions are made for, and that events are dated by.
    pub clock: Clock,
    /// Called with every decision before its writes.
    pub observer: Option<DecisionObserver>,
}

impl Settings {
    pub fn new(dialects: Vec<&'static dyn Dialect>) -> Self {
        let metrics = Arc::new(Metrics::default());
        Self {
            dialects,
            observe: false,
            concurrency: 32,
            decision_log: None,
            metrics,
            fence: Fence::none(),
            clock: Clock::default(),
            observer: None,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dialects: Vec<&str> = self.dialects.iter().map(|dialect| dialect.name()).collect();
        f.debug_struct("Settings")
            .field("dialects", &dialects)
            .field("observe", &self.observe)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

/// One reconciliation of a rollout.
#[derive(Debug)]
pub struct Reconciliation {
    pub rollout: Rollout,
    /// None if the rollout is gone, or if the reconciliation only reports a denied write.
    pub step: Option<Decided>,
    /// The writes to execute; the reconciliation then lasts until [`Reconciler::finish`].
    pub execution: Option<StepExecution>,
}

/// The decision of a reconciliation, for metrics.
#[derive(Debug)]
pub struct Decided {
    pub dialect: &'static str,
    pub verdict: convoy_plan::Verdict,
}

/// The cache, the work queue, and the steps in flight.
pub struct Reconciler {
    cache: Cache,
    queue: WorkQueue<Rollout>,
    lanes: Lanes,
    in_flight: BTreeMap<Rollout, InFlight>,
    holds: BTreeMap<Rollout, Holds>,
    /// What was said in events about each rollout and still holds.
    warned: BTreeMap<Rollout, Warned>,
    /// The write that the server denied in the last reconciliation of a rollout.
    denials: BTreeMap<Rollout, Denial>,
    failures: Failures,
    /// Rollouts that had only a status to write while others waited, and were requeued behind them.
    yielded: BTreeSet<Rollout>,
    /// Kubernetes Events to record.
    events: Vec<ObjectEvent>,
    observe: bool,
    concurrency: usize,
    log: Option<DecisionLog>,
    metrics: Arc<Metrics>,
    observer: Option<DecisionObserver>,
}

/// What follows once the writes of a step have ended.
#[derive(Debug, Default)]
struct InFlight {
    wake_at: Option<Timestamp>,
    events: Vec<Event>,
    /// What its writes add to counters.
    counts: Vec<Increment>,
    /// Its only write reports in the status that another write was denied.
    reports_denial: bool,
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler")
            .field("queue", &self.queue)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

impl Reconciler {
    pub fn new(settings: Settings) -> Self {
        // Those who send the writes look at the fence.
        let Settings { dialects, observe, concurrency, decision_log, metrics, observer, .. } =
            settings;
        Self {
            cache: Cache::new(dialects),
            queue: WorkQueue::default(),
            lanes: Lanes::new(concurrency),
            in_flight: BTreeMap::new(),
            holds: BTreeMap::new(),
            warned: BTreeMap::new(),
            denials: BTreeMap::new(),
            failures: Failures::default(),
            yielded: BTreeSet::new(),
            events: Vec::new(),
            observe,
            concurrency: concurrency.max(1),
            log: decision_log,
            metrics,
            observer,
        }
    }

    /// The fields to keep of each collection.
    pub fn projections(&self) -> &Arc<Projections> {
        self.cache.watches().projections()
    }

    /// The watches to begin and to end since the last call, in order.
    pub fn take_watch_changes(&mut self) -> Vec<WatchChange> {
        self.cache.watches_mut().take_changes()
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Applies an event to the cache, and queues the rollouts it affects.
    pub fn handle(&mut self, event: CacheEvent) {
        let was_listed = self.cache.watches().is_home_listed();
        let affected = self.cache.handle(event);
        self.report_refused();
        if !self.cache.watches().is_home_listed() {
            return;
        }
        if was_listed {
            for rollout in affected {
                self.queue.add(rollout);
            }
            return;
        }
        tracing::info!(objects = self.cache.world().len(), "all kinds are listed");
        self.metrics.set_ready(true);
        self.metrics.set_active();
        for rollout in self.cache.rollouts() {
            self.queue.add(rollout);
        }
    }

    /// Reconciles the next rollout of the queue; `None` if none is due or too many are in flight.
    pub fn reconcile(&mut self, now: Timestamp) -> Option<Reconciliation> {
        if !self.may_start() {
            return None;
        }
        for rollout in self.lanes.unpark() {
            self.queue.add(rollout);
        }
        let rollout = loop {
            let rollout = self.queue.take(now)?;
            self.cache.update_needs(&rollout);
            if !self.lanes.park(&rollout, &self.cache.watches().clusters(&rollout)) {
                break rollout;
            }
            self.queue.suspend(&rollout);
        };
        let reconciliation = self.pass(rollout, now);
        self.metrics.set_queue_depth(self.queue.depth());
        Some(reconciliation)
    }

    /// How long nothing is due unless an event arrives; `None`: for ever.
    pub fn idle_for(&self, now: Timestamp) -> Option<Duration> {
        if !self.may_start() {
            return None;
        }
        if self.queue.depth() > 0 || self.lanes.has_room_for_parked() {
            return Some(Duration::ZERO);
        }
        let wait = self.queue.next_wake()?.duration_since(now);
        // A timer in the past is due.
        Some(Duration::try_from(wait).unwrap_or(Duration::ZERO))
    }

    /// Whether rollouts are due that wait for steps in flight to end.
    pub fn is_behind(&self) -> bool {
        !self.may_start() && self.queue.depth() > 0
    }

    /// How many steps are being executed.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether a failed reconciliation waits for its retry.
    pub fn has_failures(&self) -> bool {
        self.queue.failing() > 0
    }

    /// The writes of a step have ended.
    pub fn finish(&mut self, rollout: &Rollout, finished: FinishedStep, now: Timestamp) {
        let Some(InFlight { wake_at, events, counts, reports_denial }) =
            self.in_flight.remove(rollout)
        else {
            return;
        };
        self.lanes.leave(rollout);
        let reported: Vec<Event> =
            events.into_iter().filter(|event| finished.applied(event_target(event))).collect();
        self.record(&reported);
        let is_applied =
            |count: &&Increment| count.written.as_ref().is_some_and(|key| finished.applied(key));
        self.metrics.count(counts.iter().filter(is_applied));
        if !matches!(finished.result, StepResult::Retry { .. }) {
            self.failures.settle(rollout);
        }
        match finished.result {
            // Whether or not the report was written, the step that was denied is tried again.
            _ if reports_denial => self.queue.retry(rollout, now, Duration::ZERO),
            StepResult::Done => self.queue.done(rollout, wake_at),
            StepResult::Conflict => {
                tracing::debug!(rollout = %rollout.key, "write conflict; planning again");
                self.queue.retry(rollout, now, Duration::ZERO);
            }
            StepResult::Retry { at_least, message } => {
                self.failures.report(rollout, &message);
                self.queue.retry(rollout, now, at_least);
            }
            StepResult::Denied(denial) => {
                let Denial { target, verb, message } = &denial;
                tracing::warn!(rollout = %rollout.key, %target, verb, why = message, "write denied");
                if let Some(complaint) = self.cache.complain(rollout, &denial, now) {
                    self.record(&[complaint.event]);
                    self.denials.insert(rollout.clone(), denial);
                }
                self.queue.retry(rollout, now, Duration::ZERO);
            }
        }
    }

    /// The Kubernetes Events to record since the last call.
    pub fn take_events(&mut self) -> Vec<ObjectEvent> {
        std::mem::take(&mut self.events)
    }

    /// Whether any rollout may start. With members, each cluster has its own limit, and a rollout
    /// has to be looked at to know its clusters.
    fn may_start(&self) -> bool {
        let watches = self.cache.watches();
        watches.is_home_listed() && (watches.has_members() || !self.lanes.is_full(""))
    }

    fn begin(&mut self, rollout: &Rollout, in_flight: InFlight) {
        self.lanes.enter(rollout, self.cache.watches().clusters(rollout));
        self.in_flight.insert(rollout.clone(), in_flight);
    }

    /// One pass over a rollout: observe, decide, and prepare the writes.
    fn pass(&mut self, rollout: Rollout, now: Timestamp) -> Reconciliation {
        if let Some(action) = self.denial_report(&rollout, now) {
            let in_flight = InFlight { reports_denial: true, ..InFlight::default() };
            self.begin(&rollout, in_flight);
            let execution = Some(self.execution(&rollout, Vec::new(), Some(action)));
            return Reconciliation { rollout, step: None, execution };
        }
        let step = self.cache.postpone(&rollout).or_else(|| self.cache.decide(&rollout, now));
        let Some(mut step) = step else {
            self.queue.done(&rollout, None);
            self.set_holds(&rollout, Holds::new());
            self.warned.remove(&rollout);
            self.failures.settle(&rollout);
            self.yielded.remove(&rollout);
            self.metrics.remove_series(&rollout);
            if let Some(log) = &mut self.log {
                log.forget(&rollout);
            }
            return Reconciliation { rollout, step: None, execution: None };
        };
        if step.rest.is_positive() {
            self.queue.rest(&rollout, now.checked_add(step.rest).unwrap_or(Timestamp::MAX));
        }
        let object = self.cache.world().get(&rollout.key);
        let created = object.and_then(convoy_api::Object::created_at);
        let named = self.cache.dialect(&rollout).rollout_kinds();
        let is_rollout = named.is_empty() || named.iter().any(|it| it.kind == rollout.key.kind);
        let decision = Decision { rollout: &rollout, step: &step, created, now };
        self.metrics.count_decision(&decision, is_rollout);
        self.set_holds(&rollout, metrics::holds(&step));
        self.warn(&rollout, &step);
        step.events.retain(|event| !event.lasts);
        self.metrics.set_series(&rollout, series::of_step(&step));
        self.metrics.count(step.counts.iter().filter(|count| count.written.is_none()));
        self.log_decision(&rollout, &step, now);
        if let Some(observer) = &mut self.observer {
            observer(&step, &self.cache, now);
        }
        let object = self.cache.world().get(&rollout.key);
        let status = object.and_then(|object| request::status(step.status.as_ref(), object));
        let actions = std::mem::take(&mut step.actions);
        let decided = Some(Decided { dialect: step.dialect, verdict: step.verdict });
        if self.observe || actions.is_empty() && status.is_none() {
            self.record(&step.events);
            self.queue.done(&rollout, step.wake_at);
            return Reconciliation { rollout, step: decided, execution: None };
        }
        if actions.is_empty() && self.yields(&rollout) {
            self.queue.done(&rollout, step.wake_at);
            self.queue.add(rollout.clone());
            return Reconciliation { rollout, step: decided, execution: None };
        }
        let Step { wake_at, events, counts, .. } = step;
        let in_flight = InFlight { wake_at, events, counts, reports_denial: false };
        self.begin(&rollout, in_flight);
        let execution = Some(self.execution(&rollout, actions, status));
        Reconciliation { rollout, step: decided, execution }
    }

    /// Whether a rollout that only has a status to write is requeued behind the others, once: in
    /// a long queue, more changes will be reported by the same write then.
    fn yields(&mut self, rollout: &Rollout) -> bool {
        let crowded = self.queue.depth() + self.lanes.parked() >= self.concurrency;
        !self.yielded.remove(rollout) && crowded && self.yielded.insert(rollout.clone())
    }

    fn execution(
        &self,
        rollout: &Rollout,
        actions: Vec<Action>,
        status: Option<Action>,
    ) -> StepExecution {
        let manager = self.cache.dialect(rollout).field_manager();
        let (projections, metrics) = (Arc::clone(self.projections()), Arc::clone(&self.metrics));
        StepExecution::new(actions, status, manager, projections, metrics)
    }

    /// The write that reports a denial in the status, before the step is tried again.
    fn denial_report(&mut self, rollout: &Rollout, now: Timestamp) -> Option<Action> {
        let denial = self.denials.remove(rollout)?;
        let status = self.cache.complain(rollout, &denial, now)?.status?;
        request::status(Some(&status), self.cache.world().get(&rollout.key)?)
    }

    /// Logs which objects were found invalid, and records an event for those that have no step of
    /// their own to report it.
    fn report_refused(&mut self) {
        for found in self.cache.take_refused() {
            let Diagnostic { key, object, field, message, .. } = &found;
            tracing::warn!(%object, field, why = message, "object is invalid; it is not acted on");
            let known = self.cache.world().get(key);
            if known.is_some_and(|known| !self.cache.is_rollout(known)) {
                self.record(&[convoy_plan::refused_event(&found)]);
            }
        }
    }

    /// Queues events about objects that are in the cache.
    fn record(&mut self, events: &[Event]) {
        if self.observe {
            return;
        }
        for event in events {
            if let Some(object) = self.cache.world().get(&event.regarding) {
                self.events.push(ObjectEvent::new(
                    object,
                    event.kind,
                    &event.reason,
                    &event.message,
                ));
            }
        }
    }

    /// Records an event for each new reason that somebody must act on, and for each new state.
    fn warn(&mut self, rollout: &Rollout, step: &Step) {
        let mut warned = self.warned.remove(rollout).unwrap_or_default();
        let events = warned.update(step);
        if !warned.is_empty() {
            self.warned.insert(rollout.clone(), warned);
        }
        self.record(&events);
    }

    fn set_holds(&mut self, rollout: &Rollout, now: Holds) {
        let before = self.holds.remove(rollout).unwrap_or_default();
        if before != now {
            self.metrics.change_holds(self.cache.dialect(rollout).name(), &before, &now);
        }
        if !now.is_empty() {
            self.holds.insert(rollout.clone(), now);
        }
    }

    fn log_decision(&mut self, rollout: &Rollout, step: &Step, now: Timestamp) {
        let Some(log) = &mut self.log else { return };
        if let Err(error) = log.append(rollout, step, &self.cache, now) {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "could not write to the decision log");
        }
    }
}

/// The object whose write an event reports.
fn event_target(event: &Event) -> &ObjectKey {
    event.reports.as_ref().unwrap_or(&event.regarding)
}

#[cfg(test)]
mod tests {
    use convoy_api::apps::REPLICA_SET;
    use convoy_plan::dialect::apps::ReplicaSets;
    use convoy_testkit::{NOW, apps};
    use serde_json::json;

    use super::*;

    /// A reconciler of ReplicaSets with outdated statuses that writes one at a time.
    fn reconciler(sets: &[&str]) -> Reconciler {
        let settings = Settings { concurrency: 1, ..Settings::new(vec![&ReplicaSets]) };
        let mut reconciler = Reconciler::new(settings);
        let stale = |name: &&str| {
            apps::replica_set(name, "web:v1", 0, 0).with("/status/replicas", json!(2)).build()
        };
        for change in reconciler.take_watch_changes() {
            let WatchChange::Start { collection, .. } = change else { panic!("{change:?}") };
            let is_set = collection.kind == REPLICA_SET;
            let objects = sets.iter().filter(|_| is_set).map(stale).collect();
            reconciler.handle(CacheEvent::Listed { collection, version: Some(1), objects });
        }
        reconciler
    }

    fn reconciled(reconciler: &mut Reconciler) -> Vec<(String, bool)> {
        let next = || reconciler.reconcile(NOW.parse().expect("an instant"));
        let all = std::iter::from_fn(next);
        all.map(|one| (one.rollout.key.name.to_string(), one.execution.is_some())).collect()
    }

    #[test]
    fn a_rollout_with_only_a_status_to_write_is_requeued_once() {
        let pair = |name: &str, is_written: bool| (name.to_owned(), is_written);
        assert_eq!(reconciled(&mut reconciler(&["a"])), [pair("a", true)]);
        assert_eq!(
            reconciled(&mut reconciler(&["a", "b"])),
            [pair("a", false), pair("b", false), pair("a", true)]
        );
    }
}
