//! The one writer: takes transactions from many, commits them together, publishes, answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::backend::{Backend, BackendError, Record};
use crate::commit::{Staged, Transaction, WriteError, Written};
use crate::entry::{Change, Event, Head, Revision};
use crate::store::{Published, Settings};
use crate::ticket::{self, Reply, Ticket};

/// A batch is cut at this many transactions or bytes, whichever comes first.
const BATCH_MOST: usize = 256;
const BATCH_BYTES: usize = 1 << 20;

type Answer<H> = Result<Written<H>, WriteError<H>>;
type Waiting<H> = (Transaction<H>, Reply<Answer<H>>);

#[derive(Debug)]
pub(crate) struct Writer<H: Head> {
    queue: Arc<Queue<H>>,
    bench: Arc<Mutex<Bench<H>>>,
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
    closed: bool,
}

/// What only the writer touches.
struct Bench<H: Head> {
    backend: Box<dyn Backend>,
    published: Arc<Published<H>>,
    failure: Option<Arc<BackendError>>,
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
        let mut bench = Bench {
            backend,
            published,
            failure: None,
            kept: VecDeque::new(),
            kept_bytes: 0,
            history_bytes_max: settings.history_bytes_max,
        };
        bench.keep(&history);
        let bench = Arc::new(Mutex::new(bench));
        let state = QueueState { waiting: VecDeque::new(), closed: false };
        let queue = Arc::new(Queue { state: Mutex::new(state), grown: Condvar::new() });
        let thread = (!settings.inline).then(|| {
            let (queue, bench) = (Arc::clone(&queue), Arc::clone(&bench));
            let run = move || {
                while let Some(batch) = queue.next_batch() {
                    bench.lock().commit(batch);
                }
            };
            let named = std::thread::Builder::new().name("store-writer".to_owned());
            named.spawn(run).expect("the system starts threads")
        });
        Self { queue, bench, thread: Mutex::new(thread), settings }
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

    pub(crate) fn flush(&self) -> Result<(), BackendError> {
        self.bench.lock().backend.flush()
    }

    pub(crate) fn failure(&self) -> Option<Arc<BackendError>> {
        self.bench.lock().failure.clone()
    }

    /// Commits what waits, takes nothing more, and makes everything durable.
    pub(crate) fn stop(&self) -> Result<(), BackendError> {
        self.queue.state.lock().closed = true;
        self.queue.grown.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            thread.join().expect("the writer does not panic");
        }
        let mut bench = self.bench.lock();
        match &bench.failure {
            Some(failure) => Err(BackendError::clone(failure)),
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
    /// What waits, up to a batch; none when the queue is closed and empty.
    fn next_batch(&self) -> Option<Vec<Waiting<H>>> {
        let mut state = self.state.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return None;
            }
            self.grown.wait(&mut state);
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_MOST && bytes < BATCH_BYTES {
            let Some(next) = state.waiting.pop_front() else { break };
            bytes += next.0.bytes();
            batch.push(next);
        }
        Some(batch)
    }
}

impl<H: Head> Bench<H> {
    /// Decides, makes durable, publishes, answers: in this order.
    fn commit(&mut self, batch: Vec<Waiting<H>>) {
        if let Some(failure) = &self.failure {
            for (_, reply) in batch {
                reply.answer(Err(WriteError::Failed(Arc::clone(failure))));
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
        if let Err(error) = self.backend.commit(&records) {
            let failure = Arc::new(error);
            self.failure = Some(Arc::clone(&failure));
            return Err(failure);
        }
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
            self.failure = Some(Arc::new(error));
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
        self.backend.compact(revision)
    }
}

impl<H: Head> std::fmt::Debug for Bench<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("failure", &self.failure).finish_non_exhaustive()
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
