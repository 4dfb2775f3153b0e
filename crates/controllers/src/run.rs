//! The loop on an API server, in real time. One task has the [`Brain`], so that a decision sees
//! everything that was told before it; watches and writes run beside it and tell it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::brain::{Brain, News, Settings};
use crate::cache::Rollout;
use crate::discovery::Discovery;
use crate::errand::{Ended, Errand};
use crate::events::Recorder;
use crate::executor::Executor;
use crate::follower::Follower;
use crate::metrics::Metrics;
use crate::watch::Watcher;

/// What is told to the loop and not yet taken in: objects that are open, and take their room.
/// Whoever tells more waits.
const MESSAGES: usize = 128;
/// Decisions between two looks at what is new.
const PASSES: usize = 64;
/// How long to sleep at most: clocks may be set.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// How long writes that are on their way may take to end when the loop ends.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// What the loop is told.
#[derive(Debug)]
pub(crate) enum Message {
    News(News),
    /// The writes of a step have ended.
    Finished {
        rollout: Rollout,
        ended: Ended,
    },
}

/// Runs `settings` against the server that `client` leads to, until `shutdown`; then lets the
/// writes end that are on their way.
pub async fn run(client: Client, settings: Settings, shutdown: impl Future<Output = ()>) {
    let (sender, mut messages) = mpsc::channel(MESSAGES);
    let mut watchers = JoinSet::new();
    let (mut shell, recording) = Shell::new(client, settings, sender, &mut watchers);
    let mut shutdown = std::pin::pin!(shutdown);
    let mut told = Vec::with_capacity(MESSAGES);
    loop {
        shell.dispatch();
        tokio::select! {
            () = &mut shutdown => break,
            _ = messages.recv_many(&mut told, MESSAGES) => {
                for message in told.drain(..) {
                    shell.take(message);
                }
            }
            () = tokio::time::sleep(shell.pause()) => {}
        }
    }
    watchers.shutdown().await;
    let end = async {
        while shell.brain.under_way() > 0 {
            let Some(message) = messages.recv().await else { return };
            shell.take(message);
        }
    };
    if tokio::time::timeout(ENDING_MAX, end).await.is_err() {
        tracing::warn!("writes did not end in time");
    }
    drop(shell);
    if let Some(recording) = recording
        && tokio::time::timeout(ENDING_MAX, recording).await.is_err()
    {
        tracing::warn!("events did not end in time");
    }
}

/// The core, and what it has to send with.
struct Shell {
    brain: Brain,
    executor: Arc<Executor>,
    /// None: nothing is written.
    recorder: Option<Recorder>,
    metrics: Arc<Metrics>,
}

impl Shell {
    fn new(
        client: Client,
        settings: Settings,
        messages: mpsc::Sender<Message>,
        watchers: &mut JoinSet<()>,
    ) -> (Self, Option<tokio::task::JoinHandle<()>>) {
        let metrics = Arc::clone(&settings.metrics);
        let recording = (!settings.observe).then(|| Recorder::start(client.clone()));
        let (recorder, recording) = recording.unzip();
        let brain = Brain::new(settings);
        let discovery = Arc::new(Discovery::default());
        for kind in brain.projections().kinds() {
            let follower = Follower::new(kind.clone(), Arc::clone(brain.projections()));
            let (client, messages) = (client.clone(), messages.clone());
            let discovery = Arc::clone(&discovery);
            watchers.spawn(Watcher { client, discovery, follower, messages }.run());
        }
        let executor = Arc::new(Executor { client, discovery, messages });
        (Self { brain, executor, recorder, metrics }, recording)
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::News(news) => self.brain.tell(news),
            Message::Finished { rollout, ended } => {
                self.brain.finish(&rollout, ended, Timestamp::now());
                self.record();
            }
        }
    }

    /// Gives their turn to as many as may have it now.
    fn dispatch(&mut self) {
        for _ in 0..PASSES {
            let started = Instant::now();
            let Some(turn) = self.brain.turn(Timestamp::now()) else { break };
            if let Some(decided) = &turn.step {
                self.metrics.planned(decided.dialect, started.elapsed());
            }
            if let Some(errand) = turn.errand {
                self.carry_out(turn.rollout, errand);
            }
        }
        self.record();
    }

    fn carry_out(&self, rollout: Rollout, errand: Errand) {
        tracing::debug!(rollout = %rollout.key, writes = errand.actions().len(), "carrying out");
        let executor = Arc::clone(&self.executor);
        tokio::spawn(async move {
            // A defect costs this attempt; the rollout is not held up by it for ever.
            let ended = AssertUnwindSafe(executor.carry_out(errand)).catch_unwind().await;
            let ended = ended.unwrap_or_else(|_| {
                tracing::error!(rollout = %rollout.key, "carrying out ended in a panic");
                Ended::broken("carrying out ended in a panic")
            });
            // Without the loop nobody needs to know.
            drop(executor.messages.send(Message::Finished { rollout, ended }).await);
        });
    }

    fn pause(&self) -> Duration {
        self.brain.pause(Timestamp::now()).unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    fn record(&mut self) {
        for note in self.brain.notes() {
            if let Some(recorder) = &self.recorder {
                recorder.record(note);
            }
        }
    }
}
