//! The event log of one shelf, of a topic, or of the whole store, in revision order. Watchers read
//! it at their own pace: a slow one costs no memory, and is cut off when compaction passes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::{Condvar, Mutex, RwLock};

use crate::entry::{Event, Metadata, Revision};
use crate::topic::Topic;

#[derive(Debug)]
pub(crate) struct Log<M> {
    /// Logs of parts that somebody follows. Taken before `kept` where both are.
    topics: RwLock<BTreeMap<Topic, Arc<Log<M>>>>,
    kept: RwLock<Kept<M>>,
    /// By the number of their watch.
    sleepers: Mutex<BTreeMap<u64, Waker>>,
    watches: AtomicU64,
    /// Wakes threads; the flag under it only pairs it with a lock.
    grown: (Mutex<u64>, Condvar),
}

#[derive(Debug)]
struct Kept<M> {
    events: VecDeque<Arc<Event<M>>>,
    /// Events up to and including this one are gone.
    compacted: Revision,
    closed: bool,
}

/// What a reader finds beyond its place.
#[derive(Debug)]
pub(crate) enum Found<M> {
    Events(Vec<Arc<Event<M>>>),
    /// Nothing yet.
    Nothing,
    /// Its place is compacted away.
    Compacted(Revision),
    /// The store is shut down, and everything was read.
    Closed,
}

impl<M> Log<M> {
    pub(crate) fn new(compacted: Revision) -> Self {
        Self::with(Kept { events: VecDeque::new(), compacted, closed: false })
    }

    fn with(kept: Kept<M>) -> Self {
        Self {
            topics: RwLock::default(),
            kept: RwLock::new(kept),
            sleepers: Mutex::default(),
            watches: AtomicU64::new(0),
            grown: (Mutex::new(0), Condvar::new()),
        }
    }

    /// Adds an event without waking anyone: readers go as far as the head, which follows. The
    /// logs of parts that it went into are noted, to be woken too.
    pub(crate) fn append(&self, event: &Arc<Event<M>>, touched: &mut Vec<Arc<Self>>)
    where
        M: Metadata,
    {
        let topics = self.topics.read();
        if !topics.is_empty() {
            for log in Topic::all_of(event).filter_map(|topic| topics.get(&topic)) {
                log.kept.write().events.push_back(Arc::clone(event));
                touched.push(Arc::clone(log));
            }
        }
        self.kept.write().events.push_back(Arc::clone(event));
    }

    /// The log of a part, which has every event from here on.
    pub(crate) fn follow(&self, topic: &Topic) -> Arc<Self> {
        let mut topics = self.topics.write();
        let log = topics.entry(topic.clone()).or_insert_with(|| {
            let kept = self.kept.read();
            let last = kept.events.back().map_or(kept.compacted, |event| event.revision);
            let (events, closed) = (VecDeque::new(), kept.closed);
            Arc::new(Self::with(Kept { events, compacted: last, closed }))
        });
        Arc::clone(log)
    }

    /// Keeps no log of a part that only the caller still follows.
    pub(crate) fn leave(&self, topic: &Topic) {
        let mut topics = self.topics.write();
        // The map's and the caller's.
        if topics.get(topic).is_some_and(|log| Arc::strong_count(log) <= 2) {
            topics.remove(topic);
        }
    }

    /// Wakes all waiting readers.
    pub(crate) fn wake(&self) {
        *self.grown.0.lock() += 1;
        self.grown.1.notify_all();
        let sleepers = std::mem::take(&mut *self.sleepers.lock());
        for sleeper in sleepers.into_values() {
            sleeper.wake();
        }
    }

    /// Ends every watch once it has read what is there.
    pub(crate) fn close(&self) {
        let topics = self.topics.read();
        self.kept.write().closed = true;
        self.wake();
        for log in topics.values() {
            log.close();
        }
    }

    /// Up to `most` events with a revision above `after` and not above `until`: whoever hears of
    /// an object must find it when asking for it.
    pub(crate) fn read(&self, after: Revision, until: Revision, most: usize) -> Found<M> {
        let kept = self.kept.read();
        if after < kept.compacted {
            return Found::Compacted(kept.compacted);
        }
        let from = kept.events.partition_point(|event| event.revision <= after);
        let beyond = kept.events.iter().skip(from);
        let shown = beyond.take_while(|event| event.revision <= until);
        let events: Vec<_> = shown.take(most).cloned().collect();
        let is_read = kept.closed && from == kept.events.len();
        match (events.is_empty(), is_read) {
            (false, _) => Found::Events(events),
            (true, true) => Found::Closed,
            (true, false) => Found::Nothing,
        }
    }

    /// Events above `after` and not above `until`, newest first: what to undo to go back.
    pub(crate) fn newest_first(
        &self,
        after: Revision,
        until: Revision,
    ) -> Result<Vec<Arc<Event<M>>>, Revision> {
        let kept = self.kept.read();
        if after < kept.compacted {
            return Err(kept.compacted);
        }
        let within = |event: &&Arc<Event<M>>| event.revision > after && event.revision <= until;
        Ok(kept.events.iter().rev().filter(within).cloned().collect())
    }

    /// Forgets events up to and including `revision`.
    pub(crate) fn compact(&self, revision: Revision) {
        self.topics.write().retain(|_, log| {
            log.compact(revision);
            // Whoever left while it was being written to could not take it along.
            Arc::strong_count(log) > 1
        });
        let mut kept = self.kept.write();
        let gone = kept.events.partition_point(|event| event.revision <= revision);
        // A reader that is behind `revision` but has missed nothing may go on.
        let last_gone = kept.events.drain(..gone).next_back().map(|event| event.revision);
        kept.compacted = last_gone.map_or(kept.compacted, |last| kept.compacted.max(last));
    }

    /// Events up to and including this one are gone.
    pub(crate) fn compacted(&self) -> Revision {
        self.kept.read().compacted
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.read().events.is_empty()
    }

    /// A number for a watch of this log, which no other has.
    pub(crate) fn new_watch(&self) -> u64 {
        self.watches.fetch_add(1, Ordering::Relaxed)
    }

    /// Has `waker` woken by the next [`Log::wake`]: the newest one of a watch.
    pub(crate) fn wake_later(&self, watch: u64, waker: &Waker) {
        self.sleepers.lock().insert(watch, waker.clone());
    }

    /// A watch that is gone needs no waking.
    pub(crate) fn forget(&self, watch: u64) {
        self.sleepers.lock().remove(&watch);
    }

    /// Sleeps until the log is woken after `seen` wakes, or `timeout` is over.
    pub(crate) fn wait(&self, seen: u64, timeout: std::time::Duration) {
        let mut count = self.grown.0.lock();
        if *count == seen {
            self.grown.1.wait_for(&mut count, timeout);
        }
    }

    /// How often the log was woken; taken before looking, so that no wake is missed.
    pub(crate) fn wakes(&self) -> u64 {
        *self.grown.0.lock()
    }
}
