//! Runs the reconciler against API servers in real time. One task owns the [`Reconciler`], so
//! that a decision sees every event that arrived before it; watches and writes run in tasks of
//! their own and send it messages.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoy_api::clock::Clock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use smol_str::SmolStr;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::cache::CacheEvent;
use crate::clusters::{Cluster, Clusters, Members};
use crate::events::Recorder;
use crate::execution::{FinishedStep, StepExecution};
use crate::executor::Executor;
use crate::fence::{Fence, Refusal};
use crate::link::{Link, Links};
use crate::message::Message;
use crate::metrics::Metrics;
use crate::reconciler::{Reconciler, Reconciliation, Settings};
use crate::rollout::Rollout;
use crate::watchers::Watchers;

/// The most messages that wait for the reconciler; they hold objects and take memory. Senders
/// wait when the channel is full.
const MESSAGES: usize = 128;
/// The most decisions before new messages are handled.
const PASSES: usize = 64;
/// The longest sleep: the clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// How long writes in flight may take to end at shutdown.
const SHUTDOWN_MAX: Duration = Duration::from_secs(10);

/// Runs `settings` on `clusters` until `shutdown`, then waits for the writes in flight.
pub fn run<'a>(
    clusters: impl Into<Clusters>,
    settings: Settings,
    shutdown: impl Future<Output = ()> + Send + 'a,
) -> BoxFuture<'a, ()> {
    start(clusters.into(), settings, Box::pin(shutdown))
}

/// Not generic, and so compiled here.
fn start(clusters: Clusters, settings: Settings, shutdown: BoxFuture<'_, ()>) -> BoxFuture<'_, ()> {
    Box::pin(run_until(clusters, settings, shutdown))
}

async fn run_until(clusters: Clusters, settings: Settings, mut shutdown: BoxFuture<'_, ()>) {
    let Clusters { home, mut members } = clusters;
    let (sender, mut messages) = mpsc::channel(MESSAGES);
    let mut driver = Driver::new(home, settings, sender);
    driver.set_members(&members.borrow_and_update().clone());
    let mut received = Vec::with_capacity(MESSAGES);
    loop {
        driver.dispatch();
        tokio::select! {
            () = &mut shutdown => break,
            _ = messages.recv_many(&mut received, MESSAGES) => {
                for message in received.drain(..) {
                    driver.handle(message);
                }
            }
            now = changed(&mut members) => driver.set_members(&now),
            () = tokio::time::sleep(driver.idle_for()) => {}
        }
    }
    driver.end(&mut messages).await;
}

/// The members after the next change; never, if nobody changes them any more.
async fn changed(members: &mut watch::Receiver<Members>) -> Members {
    if members.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    members.borrow_and_update().clone()
}

/// The reconciler, and the tasks that it gives work to.
struct Driver {
    reconciler: Reconciler,
    links: Arc<Links>,
    /// The connections that the links were made from.
    members: Members,
    /// The number of the last link.
    last_link: u64,
    watchers: Watchers,
    executor: Arc<Executor>,
    /// By cluster; none if nothing may be written.
    recorders: BTreeMap<SmolStr, Recorder>,
    recordings: JoinSet<()>,
    observe: bool,
    metrics: Arc<Metrics>,
    fence: Fence,
    clock: Clock,
}

impl Driver {
    fn new(home: Cluster, settings: Settings, messages: mpsc::Sender<Message>) -> Self {
        let (metrics, fence) = (Arc::clone(&settings.metrics), settings.fence.clone());
        let (observe, clock) = (settings.observe, settings.clock);
        let reconciler = Reconciler::new(settings);
        let links = Arc::<Links>::default();
        let projections = Arc::clone(reconciler.projections());
        let watchers = Watchers::new(Arc::clone(&links), projections, messages.clone());
        let executor = Arc::new(Executor { links: Arc::clone(&links), messages });
        let mut driver = Self {
            reconciler,
            links,
            members: Members::new(),
            last_link: 0,
            watchers,
            executor,
            recorders: BTreeMap::new(),
            recordings: JoinSet::new(),
            observe,
            metrics,
            fence,
            clock,
        };
        driver.connect(SmolStr::default(), home);
        driver.change_watches();
        driver
    }

    /// Members join and leave.
    fn set_members(&mut self, members: &Members) {
        for name in self.links.members() {
            let is_same = self
                .members
                .get(&name)
                .zip(members.get(&name))
                .is_some_and(|(one, other)| Arc::ptr_eq(one, other));
            if !is_same {
                tracing::info!(cluster = %name, "member cluster left");
                self.links.remove(&name);
                self.recorders.remove(&name);
                self.reconciler.handle(CacheEvent::Left { cluster: name });
            }
        }
        // Before anybody joins: watches of the former connection end first.
        self.change_watches();
        for (name, cluster) in members {
            if self.links.get(name).is_none() {
                tracing::info!(cluster = %name, "member cluster joined");
                self.connect(name.clone(), Cluster::clone(cluster));
                self.reconciler.handle(CacheEvent::Joined { cluster: name.clone() });
            }
        }
        self.members.clone_from(members);
        self.change_watches();
    }

    fn connect(&mut self, name: SmolStr, cluster: Cluster) {
        self.last_link += 1;
        let link = Link::new(name.clone(), self.last_link, cluster, self.fence.clone());
        if !self.observe {
            let (recorder, recording) = Recorder::new(link.writer.clone(), self.clock);
            self.recordings.spawn(recording);
            self.recorders.insert(name, recorder);
        }
        self.links.insert(Arc::new(link));
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Cache { cluster, link, event } => {
                // Whatever a former connection still delivers is about another cluster.
                if self.links.get(&cluster).is_some_and(|known| known.number == link) {
                    self.reconciler.handle(event);
                    self.change_watches();
                }
            }
            Message::Finished { rollout, finished } => {
                self.reconciler.finish(&rollout, finished, self.now());
                self.record_events();
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.at(Timestamp::now())
    }

    fn change_watches(&mut self) {
        for change in self.reconciler.take_watch_changes() {
            self.watchers.apply(change);
        }
    }

    /// Waits for the writes in flight, and for events about them.
    async fn end(mut self, messages: &mut mpsc::Receiver<Message>) {
        self.watchers.shutdown().await;
        let end = async {
            while self.reconciler.in_flight() > 0 {
                let Some(message) = messages.recv().await else { return };
                self.handle(message);
            }
        };
        if tokio::time::timeout(SHUTDOWN_MAX, end).await.is_err() {
            tracing::warn!("writes in flight did not end before the shutdown");
        }
        let Self { recorders, mut recordings, .. } = self;
        drop(recorders);
        let recorded = async { while recordings.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_MAX, recorded).await.is_err() {
            tracing::warn!("events were not all written before the shutdown");
        }
    }

    /// Reconciles the rollouts that are due, if this process may write.
    fn dispatch(&mut self) {
        if self.fence.look().is_err() {
            return;
        }
        for _ in 0..PASSES {
            let started = Instant::now();
            let next = self.reconciler.reconcile(self.now());
            let Some(Reconciliation { rollout, step, execution }) = next else { break };
            if let Some(decided) = &step {
                self.metrics.observe_planning(decided.dialect, started.elapsed());
            }
            if let Some(execution) = execution {
                self.execute(rollout, execution);
            }
        }
        self.change_watches();
        self.record_events();
    }

    fn execute(&self, rollout: Rollout, execution: StepExecution) {
        let writes = execution.actions().len();
        tracing::debug!(rollout = %rollout.key, writes, "executing step");
        let executor = Arc::clone(&self.executor);
        tokio::spawn(async move {
            // A defect costs this attempt, and does not block the rollout for ever.
            let finished = AssertUnwindSafe(executor.execute(execution)).catch_unwind().await;
            let finished = finished.unwrap_or_else(|_| {
                tracing::error!(rollout = %rollout.key, "the execution of a step panicked");
                FinishedStep::aborted("the execution of the step panicked")
            });
            // The channel is closed only when the process ends.
            drop(executor.messages.send(Message::Finished { rollout, finished }).await);
        });
    }

    fn idle_for(&self) -> Duration {
        match self.fence.look() {
            Err(Refusal::TooEarly { wait }) => return wait.min(SLEEP_MAX),
            // The next leader decides; this process is about to end.
            Err(Refusal::NotLeading | Refusal::Over { .. }) => return SLEEP_MAX,
            Ok(_) => {}
        }
        self.reconciler.idle_for(self.now()).unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    fn record_events(&mut self) {
        for event in self.reconciler.take_events() {
            if let Some(recorder) = self.recorders.get(event.cluster()) {
                recorder.record(event);
            }
        }
    }
}
