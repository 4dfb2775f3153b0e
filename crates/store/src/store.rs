//! The store: snapshots to read, transactions to write, watches to follow.

use std::sync::Arc;

use crate::backend::{Backend, BackendError};
use crate::commit::{Transaction, WriteError, Written};
use crate::entry::{Metadata, Revision};
use crate::key::Shelf;
use crate::published::Published;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::ticket::Ticket;
use crate::topic::Topic;
use crate::watch::{Compacted, Watch};
use crate::writer::Writer;

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
        self.published.latest()
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
        let everything = self.published.everything();
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
