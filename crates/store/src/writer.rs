//! The single writer: collects transactions, commits them in batches, publishes, and reports results.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::{Condvar, Mutex};

use crate::backend::{Backend, BackendError, Record};
use crate::commit::{Staged, Transaction, WriteError, Written};
use crate::entry::{Change, Event, Metadata, Revision};
use crate::published::Published;
use crate::settings::Settings;
use crate::ticket::{self, Sender, Ticket};

/// A batch is cut at this many transactions or bytes, whichever comes first.
const BATCH_MOST: usize = 256;
const BATCH_BYTES: usize = 1 << 20;

/// Events that are forgotten at a time: writes wait for so long.
const FORGET_MOST: usize = 4_096;

/// A writer that has nothing to write looks after its backend after so long.
const IDLE: Duration = Duration::from_secs(1);

type WriteResult<M> = Result<Written<M>, WriteError<M>>;
type Waiting<M> = (Transaction<M>, Sender<WriteResult<M>>);

#[derive(Debug)]
pub(crate) struct Writer<M: Metadata> {
    queue: Arc<Queue<M>>,
    core: Arc<Mutex<WriterCore<M>>>,
    status: Arc<WriterStatus>,
    thread: Mutex<Option<JoinHandle<()>>>,
    settings: Settings,
}

/// Transactions that wait for the writer.
#[derive(Debug)]
struct Queue<M> {
    state: Mutex<QueueState<M>>,
    grown: Condvar,
}

#[derive(Debug)]
struct QueueState<M> {
    waiting: VecDeque<Waiting<M>>,
    /// What may be forgotten: up to where, and how many events are kept all the same.
    forget: Option<(Revision, usize)>,
    /// Whether that was done last, so that it takes turns with writes.
    has_forgotten: bool,
    closed: bool,
}

/// The next task of the writer.
enum Work<M> {
    Commit(Vec<Waiting<M>>),
    Forget(Revision, usize),
    /// Nothing was asked for in a while.
    Settle,
}

/// The part of the writer's state that others read without waiting for its lock, which is held
/// during commits.
#[derive(Debug, Default)]
struct WriterStatus {
    failure: ArcSwapOption<BackendError>,
    kept_events: AtomicUsize,
    kept_bytes: AtomicUsize,
}

/// The state that only the writer changes.
struct WriterCore<M: Metadata> {
    backend: Box<dyn Backend>,
    published: Arc<Published<M>>,
    status: Arc<WriterStatus>,
    /// Revision and bytes of every event kept, oldest first.
    kept: VecDeque<(Revision, usize)>,
    kept_bytes: usize,
    history_bytes_max: usize,
    /// Whether something was committed since the backend was sealed.
    is_unsealed: bool,
}

impl<M: Metadata> Writer<M> {
    pub(crate) fn start(
        backend: Box<dyn Backend>,
        published: Arc<Published<M>>,
        settings: Settings,
    ) -> Self {
        let history = published.history();
        let status = Arc::new(WriterStatus::default());
        let mut core = WriterCore {
            backend,
            published,
            status: Arc::clone(&status),
            kept: VecDeque::new(),
            kept_bytes: 0,
            history_bytes_max: settings.history_bytes_max,
            is_unsealed: false,
        };
        core.keep(&history);
        let core = Arc::new(Mutex::new(core));
        let waiting = VecDeque::new();
        let state = QueueState { waiting, forget: None, has_forgotten: false, closed: false };
        let queue = Arc::new(Queue { state: Mutex::new(state), grown: Condvar::new() });
        let thread = (!settings.inline).then(|| {
            let (queue, core) = (Arc::clone(&queue), Arc::clone(&core));
            let run = move || {
                let mut is_settled = true;
                while let Some(work) = queue.next(is_settled) {
                    let mut core = core.lock();
                    match work {
                        Work::Commit(batch) => core.commit(batch),
                        Work::Forget(until, keep) => {
                            if core.forget(until, keep) {
                                queue.forget(until, keep);
                            }
                        }
                        Work::Settle => core.settle(),
                    }
                    is_settled = core.is_settled();
                }
            };
            let named = std::thread::Builder::new().name("store-writer".to_owned());
            named.spawn(run).expect("the system starts threads")
        });
        Self { queue, core, status, thread: Mutex::new(thread), settings }
    }

    pub(crate) fn submit(&self, transaction: Transaction<M>) -> Ticket<WriteResult<M>> {
        let (sender, ticket) = ticket::pair();
        let mut state = self.queue.state.lock();
        if state.closed {
            sender.send(Err(WriteError::Closed));
        } else if self.settings.inline {
            drop(state);
            self.core.lock().commit(vec![(transaction, sender)]);
        } else if state.waiting.len() >= self.settings.queue_max {
            sender.send(Err(WriteError::Busy));
        } else {
            state.waiting.push_back((transaction, sender));
            self.queue.grown.notify_one();
        }
        ticket
    }

    pub(crate) fn compact(&self, revision: Revision) -> Result<(), BackendError> {
        self.core.lock().compact(revision)
    }

    pub(crate) fn forget(&self, until: Revision, keep: usize) {
        if self.settings.inline {
            let mut core = self.core.lock();
            while core.forget(until, keep) {}
        } else {
            self.queue.forget(until, keep);
        }
    }

    pub(crate) fn flush(&self) -> Result<(), BackendError> {
        let mut core = self.core.lock();
        if let Some(failure) = self.failure() {
            return Err(BackendError::clone(&failure));
        }
        // What could not be made durable must not be followed by more.
        core.backend.flush().inspect_err(|error| _ = core.stop(error.clone()))
    }

    pub(crate) fn failure(&self) -> Option<Arc<BackendError>> {
        self.status.failure.load_full()
    }

    pub(crate) fn history(&self) -> (usize, usize) {
        let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        (count(&self.status.kept_events), count(&self.status.kept_bytes))
    }

    /// Commits what waits, takes nothing more, and makes everything durable.
    pub(crate) fn stop(&self) -> Result<(), BackendError> {
        self.queue.state.lock().closed = true;
        self.queue.grown.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            thread.join().expect("the writer does not panic");
        }
        let mut core = self.core.lock();
        match self.failure() {
            Some(failure) => Err(BackendError::clone(&failure)),
            None => core.backend.flush(),
        }
    }
}

impl<M: Metadata> Drop for Writer<M> {
    fn drop(&mut self) {
        self.queue.state.lock().closed = true;
        self.queue.grown.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            _ = thread.join(); // a panic there was reported by the thread itself
        }
    }
}

impl<M: Metadata> Queue<M> {
    /// What waits, up to a batch, or what is to be forgotten, in turns; none when the queue is
    /// closed and empty. Comes back after a while where there is something left to settle.
    fn next(&self, is_settled: bool) -> Option<Work<M>> {
        let mut state = self.state.lock();
        while state.waiting.is_empty() && (state.forget.is_none() || state.closed) {
            if state.closed {
                return None;
            }
            if is_settled {
                self.grown.wait(&mut state);
            } else if self.grown.wait_for(&mut state, IDLE).timed_out() && state.waiting.is_empty()
            {
                return Some(Work::Settle);
            }
        }
        let is_its_turn = state.waiting.is_empty() || !state.has_forgotten;
        state.has_forgotten = is_its_turn && state.forget.is_some();
        if let Some((until, keep)) = state.forget.take_if(|_| is_its_turn) {
            return Some(Work::Forget(until, keep));
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_MOST && bytes < BATCH_BYTES {
            let Some(next) = state.waiting.pop_front() else { break };
            bytes += next.0.bytes();
            batch.push(next);
        }
        Some(Work::Commit(batch))
    }

    fn forget(&self, until: Revision, keep: usize) {
        let mut state = self.state.lock();
        // Whatever was asked for meanwhile reaches further.
        if state.forget.is_none_or(|(asked, _)| asked < until) {
            state.forget = Some((until, keep));
        }
        self.grown.notify_one();
    }
}

impl<M: Metadata> WriterCore<M> {
    /// Decides, makes durable, publishes, reports: in this order.
    fn commit(&mut self, batch: Vec<Waiting<M>>) {
        if let Err(failure) = self.ready() {
            for (_, sender) in batch {
                sender.send(Err(WriteError::Failed(Arc::clone(&failure))));
            }
            return;
        }
        let base = self.published.latest();
        let mut staged = Staged::new(base.revision());
        let decided: Vec<(WriteResult<M>, Sender<WriteResult<M>>)> = batch
            .into_iter()
            .map(|(transaction, sender)| (staged.stage(&base, transaction), sender))
            .collect();
        let made_durable = self.make_durable(&staged.events);
        for (send, sender) in decided {
            sender.send(match &made_durable {
                Ok(()) => send,
                Err(failure) => Err(WriteError::Failed(Arc::clone(failure))),
            });
        }
        self.keep_within_budget();
    }

    fn make_durable(&mut self, events: &[Arc<Event<M>>]) -> Result<(), Arc<BackendError>> {
        if events.is_empty() {
            return Ok(());
        }
        let records: Vec<Record> = events.iter().map(|event| record_of(event)).collect();
        self.backend.commit(&records).map_err(|error| self.stop(error))?;
        self.is_unsealed = true;
        self.keep(events);
        self.published.publish(events);
        Ok(())
    }

    /// Whether the backend takes writes; after a failure that passes, whether it does again.
    fn ready(&mut self) -> Result<(), Arc<BackendError>> {
        match self.status.failure.load_full() {
            None => Ok(()),
            Some(failure) if !failure.is_transient() => Err(failure),
            Some(_) => self.recover(),
        }
    }

    fn recover(&mut self) -> Result<(), Arc<BackendError>> {
        let recovered = self.backend.recover(self.published.revision());
        let records = recovered.map_err(|error| self.stop(error))?;
        tracing::warn!(recovered = records.len(), "the store takes writes again");
        self.status.failure.store(None);
        // They were reported as failed, which leaves open whether they happened: they did.
        let events = self.published.events_of(records);
        self.is_unsealed = true;
        self.keep(&events);
        self.published.publish(&events);
        Ok(())
    }

    /// Looks after the backend while there is nothing to write.
    fn settle(&mut self) {
        if self.ready().is_ok() && self.is_unsealed {
            if let Err(error) = self.backend.seal() {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "could not update the manifest");
            }
            self.is_unsealed = false;
        }
    }

    fn is_settled(&self) -> bool {
        let failure = self.status.failure.load();
        failure.as_ref().map_or(!self.is_unsealed, |failure| !failure.is_transient())
    }

    /// Counts events towards the history's budget.
    fn keep(&mut self, events: &[Arc<Event<M>>]) {
        for event in events {
            let old = event.previous.as_ref().map_or(0, |entry| entry.value.len());
            let bytes = event.entry.value.len() + old;
            self.kept.push_back((event.revision, bytes));
            self.kept_bytes += bytes;
        }
        self.show_kept();
    }

    fn show_kept(&self) {
        self.status.kept_events.store(self.kept.len(), Ordering::Relaxed);
        self.status.kept_bytes.store(self.kept_bytes, Ordering::Relaxed);
    }

    /// Stops taking writes: it is unknown whether the last commit is durable.
    fn stop(&self, error: BackendError) -> Arc<BackendError> {
        let failure = Arc::new(error);
        if self.status.failure.load().is_none() {
            let error = &*failure as &dyn std::error::Error;
            tracing::error!(error, "the store rejects writes");
        }
        self.status.failure.store(Some(Arc::clone(&failure)));
        failure
    }

    /// Compacts the oldest half once the history outgrows its budget.
    fn keep_within_budget(&mut self) {
        if self.kept_bytes <= self.history_bytes_max {
            return;
        }
        let (mut bytes, mut until) = (self.kept_bytes, None);
        for (revision, size) in &self.kept {
            if bytes <= self.history_bytes_max / 2 {
                break;
            }
            (bytes, until) = (bytes - size, Some(*revision));
        }
        if let Some(until) = until
            && let Err(error) = self.compact(until)
        {
            self.stop(error);
        }
    }

    /// Compacts some of what is both older than `until` and beyond the newest `keep`; whether
    /// there is more of it.
    fn forget(&mut self, until: Revision, keep: usize) -> bool {
        if self.ready().is_err() {
            return false;
        }
        let old = self.kept.partition_point(|(revision, _)| *revision <= until);
        let going = old.min(self.kept.len().saturating_sub(keep));
        let now = going.min(FORGET_MOST);
        let Some(&(last, _)) = now.checked_sub(1).and_then(|last| self.kept.get(last)) else {
            return false;
        };
        match self.compact(last) {
            Ok(()) => now < going,
            Err(error) => {
                self.stop(error);
                false
            }
        }
    }

    fn compact(&mut self, revision: Revision) -> Result<(), BackendError> {
        self.published.compact(revision);
        while let Some((at, bytes)) = self.kept.front()
            && *at <= revision
        {
            self.kept_bytes -= bytes;
            self.kept.pop_front();
        }
        self.show_kept();
        self.backend.compact(revision)
    }
}

impl<M: Metadata> std::fmt::Debug for WriterCore<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("seen", &self.status).finish_non_exhaustive()
    }
}

fn record_of<M>(event: &Event<M>) -> Record {
    let previous = event.previous.as_ref().map(|entry| (entry.modified, entry.value.clone()));
    let value = match event.change {
        Change::Deleted => bytes::Bytes::new(), // it is the previous one
        Change::Created | Change::Modified => event.entry.value.clone(),
    };
    let (key, created) = (event.entry.key.clone(), event.entry.created);
    Record { revision: event.revision, change: event.change, key, created, value, previous }
}
