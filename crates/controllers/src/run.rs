//! The loop: what watches and our own writes tell goes into the cache, who is affected into the
//! queue; whose turn it is gets a decision, which the executor carries out. One task decides,
//! so that a decision sees everything that was told before it; writes run beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::step::EventType;
use convoy_plan::{Dialect, Event, Step};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cache::{Cache, Rollout};
use crate::discovery::Discovery;
use crate::events::{Note, Recorder};
use crate::executor::{Ending, Executor};
use crate::log::DecisionLog;
use crate::metrics::{self, Holds, Metrics};
use crate::projection::Projections;
use crate::queue::Queue;
use crate::request;
use crate::watch::Watcher;

/// What is told to the loop and not yet taken in. Whoever tells more waits.
const MESSAGES: usize = 1024;
/// Decisions between two looks at what is new.
const PASSES: usize = 64;
/// How long to sleep at most: clocks may be set.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// How long writes that are on their way may take to end when the loop ends.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// What runs, and how.
pub struct Settings {
    pub dialects: Vec<&'static dyn Dialect>,
    /// Decide and report, but write nothing.
    pub observe: bool,
    /// Rollouts whose writes are on their way at once.
    pub concurrency: usize,
    pub decision_log: Option<DecisionLog>,
    pub metrics: Arc<Metrics>,
}

impl Settings {
    pub fn new(dialects: Vec<&'static dyn Dialect>) -> Self {
        let metrics = Arc::new(Metrics::default());
        Self { dialects, observe: false, concurrency: 32, decision_log: None, metrics }
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

/// What the loop is told.
#[derive(Debug)]
pub(crate) enum Message {
    /// All objects of a kind.
    Listed {
        kind: GroupKind,
        version: Option<u64>,
        objects: Vec<Object>,
    },
    Changed(Object),
    /// By a watch; this is the last state.
    Deleted(Object),
    /// By an own write.
    Forgotten(ObjectKey),
    /// The writes of a step have ended.
    Finished {
        rollout: Rollout,
        ending: Ending,
    },
}

/// Runs `settings` against the server that `client` leads to, until `shutdown`; then lets the
/// writes end that are on their way.
pub async fn run(client: Client, settings: Settings, shutdown: impl Future<Output = ()>) {
    let (sender, mut messages) = mpsc::channel(MESSAGES);
    let mut watchers = JoinSet::new();
    let (mut brain, recording) = Brain::new(client, settings, sender, &mut watchers);
    let mut shutdown = std::pin::pin!(shutdown);
    let mut told = Vec::with_capacity(MESSAGES);
    loop {
        brain.dispatch();
        tokio::select! {
            () = &mut shutdown => break,
            _ = messages.recv_many(&mut told, MESSAGES) => {
                for message in told.drain(..) {
                    brain.take(message);
                }
            }
            () = tokio::time::sleep(brain.pause()) => {}
        }
    }
    watchers.shutdown().await;
    let end = async {
        while brain.queue.running() > 0 {
            let Some(message) = messages.recv().await else { return };
            brain.take(message);
        }
    };
    if tokio::time::timeout(ENDING_MAX, end).await.is_err() {
        tracing::warn!("writes did not end in time");
    }
    drop(brain);
    if let Some(recording) = recording
        && tokio::time::timeout(ENDING_MAX, recording).await.is_err()
    {
        tracing::warn!("events did not end in time");
    }
}

/// Everything that is known and under way.
struct Brain {
    cache: Cache,
    queue: Queue<Rollout>,
    /// Kinds whose first list is still to come: nothing is decided before.
    unlisted: BTreeSet<GroupKind>,
    under_way: BTreeMap<Rollout, UnderWay>,
    holds: BTreeMap<Rollout, Holds>,
    executor: Arc<Executor>,
    /// None: nothing is written.
    recorder: Option<Recorder>,
    concurrency: usize,
    log: Option<DecisionLog>,
    metrics: Arc<Metrics>,
}

/// What follows on the writes of a step.
struct UnderWay {
    wake_at: Option<Timestamp>,
    events: Vec<Event>,
}

impl Brain {
    fn new(
        client: Client,
        settings: Settings,
        messages: mpsc::Sender<Message>,
        watchers: &mut JoinSet<()>,
    ) -> (Self, Option<tokio::task::JoinHandle<()>>) {
        let Settings { dialects, observe, concurrency, decision_log, metrics } = settings;
        let discovery = Arc::new(Discovery::default());
        let projections = Arc::new(Projections::of(&dialects));
        for kind in projections.kinds() {
            let (discovery, projections) = (Arc::clone(&discovery), Arc::clone(&projections));
            let (client, messages) = (client.clone(), messages.clone());
            let kind = kind.clone();
            watchers.spawn(Watcher { client, discovery, projections, kind, messages }.run());
        }
        let recording = (!observe).then(|| Recorder::start(client.clone()));
        let (recorder, recording) = recording.unzip();
        let unlisted = projections.kinds().cloned().collect();
        let metrics_of_writes = Arc::clone(&metrics);
        let executor =
            Executor { client, discovery, projections, messages, metrics: metrics_of_writes };
        let brain = Self {
            cache: Cache::new(dialects),
            queue: Queue::default(),
            unlisted,
            under_way: BTreeMap::new(),
            holds: BTreeMap::new(),
            executor: Arc::new(executor),
            recorder,
            concurrency: concurrency.max(1),
            log: decision_log,
            metrics,
        };
        (brain, recording)
    }

    fn take(&mut self, message: Message) {
        let affected = match message {
            Message::Listed { kind, version, objects } => {
                let affected = self.cache.replace(&kind, version, objects);
                if self.unlisted.remove(&kind) && self.unlisted.is_empty() {
                    tracing::info!(objects = self.cache.world().len(), "everything is listed");
                    self.metrics.ready();
                    for rollout in self.cache.rollouts() {
                        self.queue.add(rollout);
                    }
                }
                affected
            }
            Message::Changed(object) => self.cache.put(object),
            Message::Deleted(last) => self.cache.remove(&last),
            Message::Forgotten(key) => self.cache.forget(&key),
            Message::Finished { rollout, ending } => return self.finish(&rollout, ending),
        };
        if self.unlisted.is_empty() {
            for rollout in affected {
                self.queue.add(rollout);
            }
        }
    }

    /// Gives their turn to as many as may have it now.
    fn dispatch(&mut self) {
        for _ in 0..PASSES {
            if !self.may_start() {
                break;
            }
            let now = Timestamp::now();
            let Some(rollout) = self.queue.take(now) else { break };
            self.pass(rollout, now);
        }
        self.metrics.queue(self.queue.depth());
    }

    fn may_start(&self) -> bool {
        self.unlisted.is_empty() && self.under_way.len() < self.concurrency
    }

    /// How long there is nothing to do unless something is told.
    fn pause(&self) -> Duration {
        if !self.may_start() {
            return SLEEP_MAX;
        }
        if self.queue.depth() > 0 {
            return Duration::ZERO;
        }
        let wait = self.queue.next_wake().map(|at| at.duration_since(Timestamp::now()));
        // One that lies behind is due.
        let wait = wait.map(|wait| Duration::try_from(wait).unwrap_or(Duration::ZERO));
        wait.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// One pass over a rollout: decide, then let the writes begin.
    fn pass(&mut self, rollout: Rollout, now: Timestamp) {
        let started = Instant::now();
        let Some(mut step) = self.cache.decide(&rollout, now) else {
            self.queue.done(&rollout, None);
            self.note_holds(&rollout, Holds::new());
            if let Some(log) = &mut self.log {
                log.forget(&rollout);
            }
            return;
        };
        self.metrics.passed(&step, started.elapsed());
        self.note_holds(&rollout, metrics::holds(&step));
        self.write_down(&rollout, &step, now);
        let object = self.cache.world().get(&rollout.key);
        let status = object.and_then(|object| request::status(&step, object));
        let mut actions = std::mem::take(&mut step.actions);
        actions.extend(status);
        if self.recorder.is_none() || actions.is_empty() {
            self.tell(&step.events);
            self.queue.done(&rollout, step.wake_at);
            return;
        }
        tracing::debug!(rollout = %rollout.key, writes = actions.len(), "carrying out");
        let Step { wake_at, events, .. } = step;
        self.under_way.insert(rollout.clone(), UnderWay { wake_at, events });
        let executor = Arc::clone(&self.executor);
        tokio::spawn(async move {
            let ending = executor.carry_out(&actions).await;
            // Without the loop nobody needs to know.
            drop(executor.messages.send(Message::Finished { rollout, ending }).await);
        });
    }

    fn finish(&mut self, rollout: &Rollout, ending: Ending) {
        let Some(UnderWay { wake_at, events }) = self.under_way.remove(rollout) else { return };
        let now = Timestamp::now();
        match ending {
            Ending::Done => {
                self.tell(&events);
                self.queue.done(rollout, wake_at);
            }
            Ending::Conflict => {
                tracing::debug!(rollout = %rollout.key, "not as observed; planning afresh");
                self.queue.retry(rollout, now, Duration::ZERO);
            }
            Ending::Later { at_least, message } => {
                tracing::warn!(rollout = %rollout.key, message, "the server cannot now");
                self.queue.retry(rollout, now, at_least);
            }
            Ending::Refused { verb, message } => {
                tracing::warn!(rollout = %rollout.key, verb, message, "a write was refused");
                self.tell(&[refusal(rollout, verb, message)]);
                self.queue.retry(rollout, now, Duration::ZERO);
            }
        }
    }

    /// Records events about objects that are known.
    fn tell(&self, events: &[Event]) {
        let Some(recorder) = &self.recorder else { return };
        for event in events {
            if let Some(object) = self.cache.world().get(&event.regarding) {
                recorder.record(Note::new(object, event.kind, &event.reason, &event.message));
            }
        }
    }

    fn note_holds(&mut self, rollout: &Rollout, now: Holds) {
        let before = self.holds.remove(rollout).unwrap_or_default();
        if before != now {
            self.metrics.held(self.cache.dialect(rollout).name(), &before, &now);
        }
        if !now.is_empty() {
            self.holds.insert(rollout.clone(), now);
        }
    }

    fn write_down(&mut self, rollout: &Rollout, step: &Step, now: Timestamp) {
        let Some(log) = &mut self.log else { return };
        if let Err(error) = log.note(rollout, step, &self.cache, now) {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "the decision log lacks a line");
        }
    }
}

fn refusal(rollout: &Rollout, verb: &str, message: String) -> Event {
    let reason = match verb {
        "create" => "FailedCreate",
        "delete" => "FailedDelete",
        "evict" => "FailedEviction",
        _ => "FailedUpdate",
    };
    let (regarding, reason) = (rollout.key.clone(), reason.to_owned());
    Event { regarding, kind: EventType::Warning, reason, message }
}
