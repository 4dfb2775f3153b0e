//! Runs the reconciler against an API server in real time. One task owns the [`Reconciler`], so
//! that a decision sees every event that arrived before it; watches and writes run in tasks of
//! their own and send it messages.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cache::Rollout;
use crate::discovery::Discovery;
use crate::events::Recorder;
use crate::execution::{FinishedStep, StepExecution};
use crate::executor::Executor;
use crate::fence::{Fence, Refusal};
use crate::message::Message;
use crate::metrics::Metrics;
use crate::reconciler::{Reconciler, Reconciliation, Settings};
use crate::reflector::Reflector;
use crate::transport::Writer;
use crate::watch::Watcher;

/// The most messages that wait for the reconciler; they hold objects and take memory. Senders
/// wait when the channel is full.
const MESSAGES: usize = 128;
/// The most decisions before new messages are handled.
const PASSES: usize = 64;
/// The longest sleep: the clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// How long writes in flight may take to end at shutdown.
const SHUTDOWN_MAX: Duration = Duration::from_secs(10);

/// Runs `settings` against the server of `client` until `shutdown`, then waits for the writes in
/// flight.
pub async fn run(client: Client, settings: Settings, shutdown: impl Future<Output = ()>) {
    let (sender, mut messages) = mpsc::channel(MESSAGES);
    let mut watchers = JoinSet::new();
    let (mut driver, recording) = Driver::new(client, settings, sender, &mut watchers);
    let mut shutdown = std::pin::pin!(shutdown);
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
            () = tokio::time::sleep(driver.idle_for()) => {}
        }
    }
    watchers.shutdown().await;
    let end = async {
        while driver.reconciler.in_flight() > 0 {
            let Some(message) = messages.recv().await else { return };
            driver.handle(message);
        }
    };
    if tokio::time::timeout(SHUTDOWN_MAX, end).await.is_err() {
        tracing::warn!("writes in flight did not end before the shutdown");
    }
    drop(driver);
    if let Some(recording) = recording
        && tokio::time::timeout(SHUTDOWN_MAX, recording).await.is_err()
    {
        tracing::warn!("events were not all written before the shutdown");
    }
}

/// The reconciler, and the tasks that it gives work to.
struct Driver {
    reconciler: Reconciler,
    executor: Arc<Executor>,
    /// None if nothing may be written.
    recorder: Option<Recorder>,
    metrics: Arc<Metrics>,
    fence: Fence,
}

impl Driver {
    fn new(
        client: Client,
        settings: Settings,
        messages: mpsc::Sender<Message>,
        watchers: &mut JoinSet<()>,
    ) -> (Self, Option<tokio::task::JoinHandle<()>>) {
        let metrics = Arc::clone(&settings.metrics);
        let fence = settings.fence.clone();
        let writer = Writer::new(client.clone(), fence.clone());
        let recording = (!settings.observe).then(|| Recorder::start(writer.clone()));
        let (recorder, recording) = recording.unzip();
        let reconciler = Reconciler::new(settings);
        let discovery = Arc::new(Discovery::default());
        for kind in reconciler.projections().kinds() {
            let reflector = Reflector::new(kind.clone(), Arc::clone(reconciler.projections()));
            let (client, messages) = (client.clone(), messages.clone());
            let discovery = Arc::clone(&discovery);
            watchers.spawn(Watcher { client, discovery, reflector, messages }.run());
        }
        let executor = Arc::new(Executor { client, writer, discovery, messages });
        (Self { reconciler, executor, recorder, metrics, fence }, recording)
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Cache(event) => self.reconciler.handle(event),
            Message::Finished { rollout, finished } => {
                self.reconciler.finish(&rollout, finished, Timestamp::now());
                self.record_events();
            }
        }
    }

    /// Reconciles the rollouts that are due, if this process may write.
    fn dispatch(&mut self) {
        if self.fence.look().is_err() {
            return;
        }
        for _ in 0..PASSES {
            let started = Instant::now();
            let next = self.reconciler.reconcile(Timestamp::now());
            let Some(Reconciliation { rollout, step, execution }) = next else { break };
            if let Some(decided) = &step {
                self.metrics.observe_planning(decided.dialect, started.elapsed());
            }
            if let Some(execution) = execution {
                self.execute(rollout, execution);
            }
        }
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
        self.reconciler.idle_for(Timestamp::now()).unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    fn record_events(&mut self) {
        for event in self.reconciler.take_events() {
            if let Some(recorder) = &self.recorder {
                recorder.record(event);
            }
        }
    }
}
