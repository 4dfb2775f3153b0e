//! The store: snapshots to read, transactions to write, watches to follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;

use crate::backend::{Backend, BackendError, Loaded, Record};
use crate::commit::{Transaction, WriteError, Written};
use crate::entry::{Entry, Event, Metadata, Revision};
use crate::key::Shelf;
use crate::log::Log;
use crate::snapshot::Snapshot;
use crate::ticket::Ticket;
use crate::topic::Topic;
use crate::watch::{Compacted, Watch};
use crate::writer::Writer;

/// How much is kept and how much may wait.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Old versions are kept for watches and lists in the past, up to this many bytes.
    pub history_bytes_max: usize,
    /// Writes that may wait for their commit; beyond, they are refused as busy.
    pub queue_max: usize,
    /// Whether writes are committed on the caller's thread, one by one, in call order: for
    /// simulation, where the order of everything comes from one seed.
    pub inline: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { history_bytes_max: 64 << 20, queue_max: 4_096, inline: false }
    }
}

/// One keyspace with one revision counter. Cloning shares.
#[derive(Debug)]
pub struct Store<M: Metadata> {
    published: Arc<Published<M>>,
    writer: Arc<Writer<M>>,
}

impl<M: Metadata> Clone for Store<M> {
    fn clone(&self) -> Self {
        Self { published: Arc::clone(&self.published), writer: Arc::clone(&self.writer) }
    }
}

/// What readers see. Only the writer changes it.
#[derive(Debug)]
pub(crate) struct Published<M> {
    latest: ArcSwap<Snapshot<M>>,
    /// Every event, in order.
    everything: Arc<Log<M>>,
    logs: RwLock<Logs<M>>,
}

/// The events of each shelf that has some, or is followed.
#[derive(Debug)]
struct Logs<M> {
    of: BTreeMap<Shelf, Arc<Log<M>>>,
    /// Nothing at or below it is known of shelves without a log.
    unknown: Revision,
}

impl<M: Metadata> Store<M> {
    /// Loads what the backend holds and begins to take writes.
    pub fn open(mut backend: impl Backend, settings: Settings) -> Result<Self, BackendError> {
        let loaded = backend.load()?;
        let published = Arc::new(Published::load(loaded));
        let writer = Writer::start(Box::new(backend), Arc::clone(&published), settings);
        Ok(Self { published, writer: Arc::new(writer) })
    }

    /// The newest state. Reading it never waits for a write.
    pub fn snapshot(&self) -> Arc<Snapshot<M>> {
        self.published.latest.load_full()
    }

    pub fn revision(&self) -> Revision {
        self.published.revision()
    }

    /// One shelf as it was at `revision`; the other shelves of the answer are of no meaning.
    pub fn shelf_at(&self, shelf: &Shelf, revision: Revision) -> Result<Snapshot<M>, Compacted> {
        let now = self.snapshot();
        let mut past = Snapshot::clone(&now);
        let log = self.published.log(shelf);
        let newer = log.newest_first(revision, now.revision);
        for event in newer.map_err(|oldest| Compacted { wanted: revision, oldest })? {
            past.undo(&event);
        }
        past.revision = revision;
        Ok(past)
    }

    /// Hands a transaction to the writer. The result arrives when it is durable and published.
    pub fn submit(&self, transaction: Transaction<M>) -> Ticket<Result<Written<M>, WriteError<M>>> {
        self.writer.submit(transaction)
    }

    /// Hands a transaction in and waits.
    pub fn write(&self, transaction: Transaction<M>) -> Result<Written<M>, WriteError<M>> {
        self.submit(transaction).wait()
    }

    /// Follows one shelf from just after `revision`.
    pub fn watch(&self, shelf: &Shelf, revision: Revision) -> Watch<M> {
        self.watch_part(shelf, None, revision)
    }

    /// Follows one shelf, or what it holds of a topic, from just after `revision`.
    pub fn watch_part(&self, shelf: &Shelf, topic: Option<Topic>, revision: Revision) -> Watch<M> {
        let log = self.published.log(shelf);
        Watch::new(log, topic, Arc::clone(&self.published), revision)
    }

    /// Follows everything from just after `revision`.
    pub fn watch_everything(&self, revision: Revision) -> Watch<M> {
        let everything = Arc::clone(&self.published.everything);
        Watch::new(everything, None, Arc::clone(&self.published), revision)
    }

    /// Forgets history up to and including `revision`.
    pub fn compact(&self, revision: Revision) -> Result<(), BackendError> {
        self.writer.compact(revision)
    }

    /// Has the writer forget history up to and including `until`, except for the newest `keep`
    /// events, bit by bit between its writes. Nobody waits for it.
    pub fn forget(&self, until: Revision, keep: usize) {
        self.writer.forget(until, keep);
    }

    /// Makes everything durable that a relaxed durability left open.
    pub fn flush(&self) -> Result<(), BackendError> {
        self.writer.flush()
    }

    /// Takes no more writes, makes everything durable, and ends every watch.
    pub fn shut_down(&self) -> Result<(), BackendError> {
        let flushed = self.writer.stop();
        self.published.close();
        flushed
    }

    /// How much of the past is kept: events, and the bytes of their versions.
    pub fn history(&self) -> (usize, usize) {
        self.writer.history()
    }

    /// Why writes are refused, if they are.
    pub fn failure(&self) -> Option<Arc<BackendError>> {
        self.writer.failure()
    }
}

impl<M: Metadata> Published<M> {
    fn load(loaded: Loaded) -> Self {
        let mut latest = Snapshot::empty(loaded.revision);
        for live in loaded.live {
            let meta = M::read(&live.key, &live.value);
            let (created, modified) = (live.created, live.modified);
            let entry = Entry { key: live.key, created, modified, value: live.value, meta };
            latest.put(Arc::new(entry));
        }
        let events: Vec<Arc<Event<M>>> =
            loaded.history.into_iter().map(|record| Arc::new(event_of(record, &latest))).collect();
        let published = Self {
            latest: ArcSwap::from_pointee(latest),
            everything: Arc::new(Log::new(loaded.compacted)),
            logs: RwLock::new(Logs { of: BTreeMap::new(), unknown: loaded.compacted }),
        };
        for event in events {
            published.log(&event.entry.key.shelf).append(&event, &mut Vec::new());
            published.everything.append(&event, &mut Vec::new());
        }
        published
    }

    /// Makes committed events visible: in the logs first, then as the state, then to sleepers.
    pub(crate) fn publish(&self, events: &[Arc<Event<M>>]) {
        let mut latest = Snapshot::clone(&self.latest.load());
        let mut touched: BTreeMap<&Shelf, Arc<Log<M>>> = BTreeMap::new();
        let mut parts = Vec::new();
        for event in events {
            latest.advance(event);
            let shelf = &event.entry.key.shelf;
            let log = touched.entry(shelf).or_insert_with(|| self.log(shelf));
            log.append(event, &mut parts);
            self.everything.append(event, &mut parts);
        }
        self.latest.store(Arc::new(latest));
        for log in touched.values().chain(&parts) {
            log.wake();
        }
        self.everything.wake();
    }
}

impl<M> Published<M> {
    pub(crate) fn revision(&self) -> Revision {
        self.latest.load().revision
    }

    pub(crate) fn latest(&self) -> Arc<Snapshot<M>> {
        self.latest.load_full()
    }

    /// The log of a shelf; made empty where nothing was written yet.
    pub(crate) fn log(&self, shelf: &Shelf) -> Arc<Log<M>> {
        if let Some(log) = self.logs.read().of.get(shelf) {
            return Arc::clone(log);
        }
        let mut logs = self.logs.write();
        let unknown = logs.unknown;
        let log = logs.of.entry(shelf.clone());
        Arc::clone(log.or_insert_with(|| Arc::new(Log::new(unknown))))
    }

    pub(crate) fn compact(&self, revision: Revision) {
        self.everything.compact(revision);
        let mut logs = self.logs.write();
        let Logs { of, unknown } = &mut *logs;
        // What nobody follows and tells nothing goes: shelves come and go with clusters and
        // definitions.
        of.retain(|_, log| {
            log.compact(revision);
            let is_idle = Arc::strong_count(log) == 1 && log.is_empty();
            if is_idle {
                *unknown = log.compacted().max(*unknown);
            }
            !is_idle
        });
    }

    /// How many shelves have a log: what is left of those that are gone.
    #[cfg(test)]
    pub(crate) fn logs_count(&self) -> usize {
        self.logs.read().of.len()
    }

    /// Every event that is kept, oldest first.
    pub(crate) fn history(&self) -> Vec<Arc<Event<M>>> {
        let since = self.everything.compacted();
        let mut events = self.everything.newest_first(since, self.revision());
        events.as_mut().map_or(Vec::new(), |events| {
            events.reverse();
            std::mem::take(events)
        })
    }

    fn close(&self) {
        self.everything.close();
        for log in self.logs.read().of.values() {
            log.close();
        }
    }
}

/// An event as it was, sharing with `latest` the version that still stands.
fn event_of<M: Metadata>(record: Record, latest: &Snapshot<M>) -> Event<M> {
    let Record { revision, change, key, created, value, previous } = record;
    let entry_at = |modified, value: bytes::Bytes| {
        let meta = M::read(&key, &value);
        Arc::new(Entry { key: key.clone(), created, modified, value, meta })
    };
    let previous = previous.map(|(modified, value)| entry_at(modified, value));
    let entry = match (change, &previous) {
        (crate::entry::Change::Deleted, Some(last)) => Arc::clone(last),
        _ => match latest.get(&key).filter(|standing| standing.modified == revision) {
            Some(standing) => Arc::clone(standing),
            None => entry_at(revision, value),
        },
    };
    Event { revision, change, entry, previous }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::memory::MemoryBackend;

    #[test]
    fn shelves_that_are_gone_leave_nothing_behind_and_hide_nothing() {
        let settings = Settings { inline: true, ..Settings::default() };
        let store: Store<()> = Store::open(MemoryBackend, settings).unwrap();
        let shelves: Vec<Shelf> =
            (0..100).map(|number| Shelf::new(&format!("c{number}"), "pods")).collect();
        for shelf in &shelves {
            let key = shelf.key("", "a");
            let made = store.write(Transaction::create(key.clone(), Bytes::new())).unwrap();
            store.write(Transaction::delete(key, made.revision)).unwrap();
        }
        assert_eq!(store.snapshot().shelves().count(), 0);
        let followed = store.watch(&shelves[7], store.revision());
        store.compact(store.revision()).unwrap();
        assert_eq!(store.published.logs_count(), 1, "the one that is followed");
        // Whoever comes late is told so, though nothing is left of what it missed.
        assert!(store.watch(&shelves[3], Revision(7)).read().is_err());
        assert!(store.watch(&shelves[3], store.revision()).read().is_ok());
        drop(followed);
    }

    #[test]
    fn old_history_goes_and_the_newest_stays() {
        let settings = Settings { inline: true, ..Settings::default() };
        let store: Store<()> = Store::open(MemoryBackend, settings).unwrap();
        let shelf = Shelf::new("", "pods");
        for number in 1..=10 {
            let key = shelf.key("", &format!("p{number}"));
            store.write(Transaction::create(key, Bytes::new())).unwrap();
        }
        let is_kept = |after: u64| store.watch(&shelf, Revision(after)).read().is_ok();
        store.forget(Revision(0), 0);
        assert_eq!(store.history().0, 10);
        store.forget(Revision(6), 0);
        assert!(is_kept(6) && !is_kept(5));
        store.forget(Revision(10), 3);
        assert!(is_kept(7) && !is_kept(6), "three are kept, however old");
        store.forget(Revision(10), 3);
        assert_eq!(store.history().0, 3);
        assert_eq!(store.snapshot().list(&shelf).count(), 10, "what is live stays");
    }

    #[test]
    fn the_writer_forgets_between_its_writes() {
        let store: Store<()> = Store::open(MemoryBackend, Settings::default()).unwrap();
        let shelf = Shelf::new("", "pods");
        let create = |number: usize| {
            let key = shelf.key("", &format!("p{number}"));
            store.write(Transaction::create(key, Bytes::new())).unwrap();
        };
        (0..10_000).for_each(create);
        store.forget(store.revision(), 100);
        let mut number = 10_000;
        while store.history().0 > 200 {
            create(number);
            number += 1;
        }
        assert!(store.watch(&shelf, Revision(1)).read().is_err());
        assert_eq!(store.snapshot().list(&shelf).count(), number);
    }
}
