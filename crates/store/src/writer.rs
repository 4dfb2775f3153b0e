//! The one writer: takes transactions from many, commits them together, publishes, answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use arc_swap::ArcSwapOption;
use parking_lot::{Condvar, Mutex};

use crate::backend::{Backend, BackendError, Record};
use crate::commit::{Staged, Transaction, WriteError, Written};
use crate::entry::{Change, Event, Head, Revision};
use crate::store::{Published, Settings};
use crate::ticket::{self, Reply, Ticket};

/// A batch is cut at this many transactions or bytes, whichever comes first.
const BATCH_MOST: usize = 256;
const BATCH_BYTES: usize = 1 << 20;

/// Events that are forgotten at a time: writes wait for so long.
const FORGET_MOST: usize = 4_096;

type Answer<H> = Result<Written<H>, WriteError<H>>;
type Waiting<H> = (Transaction<H>, Reply<Answer<H>>);

#[derive(Debug)]
pub(crate) struct Writer<H: Head> {
    queue: Arc<Queue<H>>,
    bench: Arc<Mutex<Bench<H>>>,
    seen: Arc<Seen>,
    thread: Mutex<Option<JoinHandle<()>>>,
    settings: Settings,
}

/// Transactions that wait for the writer.
#[derive(Debug)]
struct Queue<H> {
    state: Mutex<QueueState<H>>,
    grown: Condvar,
}

#[derive(Debug)]
struct QueueState<H> {
    waiting: VecDeque<Waiting<H>>,
    /// What may be forgotten: up to where, and how many events are kept all the same.
    forget: Option<(Revision, usize)>,
    /// Whether that was done last, so that it takes turns with writes.
    has_forgotten: bool,
    closed: bool,
}

/// What the writer does next.
enum Work<H> {
    Commit(Vec<Waiting<H>>),
    Forget(Revision, usize),
}

/// What others may see of the bench without waiting for it: it is busy while a disk is.
#[derive(Debug, Default)]
struct Seen {
    failure: ArcSwapOption<BackendError>,
    kept_events: AtomicUsize,
    kept_bytes: AtomicUsize,
}

/// What only the writer touches.
struct Bench<H: Head> {
    backend: Box<dyn Backend>,
    published: Arc<Published<H>>,
    seen: Arc<Seen>,
    /// Revision and bytes of every event kept, oldest first.
    kept: VecDeque<(Revision, usize)>,
    kept_bytes: usize,
    history_bytes_max: usize,
}

impl<H: Head> Writer<H> {
    pub(crate) fn start(
        backend: Box<dyn Backend>,
        published: Arc<Published<H>>,
        settings: Settings,
    ) -> Self {
        let history = published.history();
        let seen = Arc::new(Seen::default());
        let mut bench = Bench {
            backend,
            published,
            seen: Arc::clone(&seen),
            kept: VecDeque::new(),
            kept_bytes: 0,
            history_bytes_max: settings.history_bytes_max,
        };
        bench.keep(&history);
        let bench = Arc::new(Mutex::new(bench));
        let waiting = VecDeque::new();
        let state = QueueState { waiting, forget: None, has_forgotten: false, closed: false };
        let queue = Arc::new(Queue { state: Mutex::new(state), grown: Condvar::new() });
        let thread = (!settings.inline).then(|| {
            let (queue, bench) = (Arc::clone(&queue), Arc::clone(&bench));
            let run = move || {
                while let Some(work) = queue.next() {
                    match work {
                        Work::Commit(batch) => bench.lock().commit(batch),
                        Work::Forget(until, keep) => {
                            if bench.lock().forget(until, keep) {
                                queue.forget(until, keep);
                            }
                        }
                    }
                }
            };
            let named = std::thread::Builder::new().name("store-writer".to_owned());
            named.spawn(run).expect("the system starts threads")
        });
        Self { queue, bench, seen, thread: Mutex::new(thread), settings }
    }

    pub(crate) fn submit(&self, transaction: Transaction<H>) -> Ticket<Answer<H>> {
        let (reply, ticket) = ticket::pair();
        let mut state = self.queue.state.lock();
        if state.closed {
            reply.answer(Err(WriteError::Closed));
        } else if self.settings.inline {
            drop(state);
            self.bench.lock().commit(vec![(transaction, reply)]);
        } else if state.waiting.len() >= self.settings.queue_max {
            reply.answer(Err(WriteError::Busy));
        } else {
            state.waiting.push_back((transaction, reply));
            self.queue.grown.notify_one();
        }
        ticket
    }

    pub(crate) fn compact(&self, revision: Revision) -> Result<(), BackendError> {
        self.bench.lock().compact(revision)
    }

    pub(crate) fn forget(&self, until: Revision, keep: usize) {
        if self.settings.inline {
            let mut bench = self.bench.lock();
            while bench.forget(until, keep) {}
        } else {
            self.queue.forget(until, keep);
        }
    }

    pub(crate) fn flush(&self) -> Result<(), BackendError> {
        self.bench.lock().backend.flush()
    }

    pub(crate) fn failure(&self) -> Option<Arc<BackendError>> {
        self.seen.failure.load_full()
    }

    pub(crate) fn history(&self) -> (usize, usize) {
        let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        (count(&self.seen.kept_events), count(&self.seen.kept_bytes))
    }

    /// Commits what waits, takes nothing more, and makes everything durable.
    pub(crate) fn stop(&self) -> Result<(), BackendError> {
        self.queue.state.lock().closed = true;
        self.queue.grown.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            thread.join().expect("the writer does not panic");
        }
        let mut bench = self.bench.lock();
        match self.failure() {
            Some(failure) => Err(BackendError::clone(&failure)),
            None => bench.backend.flush(),
        }
    }
}

impl<H: Head> Drop for Writer<H> {
    fn drop(&mut self) {
        self.queue.state.lock().closed = true;
        self.queue.grown.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            _ = thread.join(); // a panic there was reported by the thread itself
        }
    }
}

impl<H: Head> Queue<H> {
    /// What waits, up to a batch, or what is to be forgotten, in turns; none when the queue is
    /// closed and empty.
    fn next(&self) -> Option<Work<H>> {
        let mut state = self.state.lock();
        while state.waiting.is_empty() && (state.forget.is_none() || state.closed) {
            if state.closed {
                return None;
            }
            self.grown.wait(&mut state);
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

impl<H: Head> Bench<H> {
    /// Decides, makes durable, publishes, answers: in this order.
    fn commit(&mut self, batch: Vec<Waiting<H>>) {
        if let Some(failure) = self.seen.failure.load_full() {
            for (_, reply) in batch {
                reply.answer(Err(WriteError::Failed(Arc::clone(&failure))));
            }
            return;
        }
        let base = self.published.head();
        let mut staged = Staged::new(base.revision());
        let decided: Vec<(Answer<H>, Reply<Answer<H>>)> = batch
            .into_iter()
            .map(|(transaction, reply)| (staged.stage(&base, transaction), reply))
            .collect();
        let made_durable = self.make_durable(&staged.events);
        for (answer, reply) in decided {
            reply.answer(match &made_durable {
                Ok(()) => answer,
                Err(failure) => Err(WriteError::Failed(Arc::clone(failure))),
            });
        }
        self.keep_within_budget();
    }

    fn make_durable(&mut self, events: &[Arc<Event<H>>]) -> Result<(), Arc<BackendError>> {
        if events.is_empty() {
            return Ok(());
        }
        let records: Vec<Record> = events.iter().map(|event| record_of(event)).collect();
        self.backend.commit(&records).map_err(|error| self.stop(error))?;
        self.keep(events);
        self.published.publish(events);
        Ok(())
    }

    /// Counts events towards the history's budget.
    fn keep(&mut self, events: &[Arc<Event<H>>]) {
        for event in events {
            let old = event.previous.as_ref().map_or(0, |entry| entry.value.len());
            let bytes = event.entry.value.len() + old;
            self.kept.push_back((event.revision, bytes));
            self.kept_bytes += bytes;
        }
        self.show_kept();
    }

    fn show_kept(&self) {
        self.seen.kept_events.store(self.kept.len(), Ordering::Relaxed);
        self.seen.kept_bytes.store(self.kept_bytes, Ordering::Relaxed);
    }

    /// Takes no more writes: whether the last one would survive is unknown.
    fn stop(&self, error: BackendError) -> Arc<BackendError> {
        let failure = Arc::new(error);
        self.seen.failure.store(Some(Arc::clone(&failure)));
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
        if self.seen.failure.load().is_some() {
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

impl<H: Head> std::fmt::Debug for Bench<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("seen", &self.seen).finish_non_exhaustive()
    }
}

fn record_of<H>(event: &Event<H>) -> Record {
    let previous = event.previous.as_ref().map(|entry| (entry.modified, entry.value.clone()));
    let value = match event.change {
        Change::Deleted => bytes::Bytes::new(), // it is the previous one
        Change::Created | Change::Modified => event.entry.value.clone(),
    };
    let (key, created) = (event.entry.key.clone(), event.entry.created);
    Record { revision: event.revision, change: event.change, key, created, value, previous }
}
