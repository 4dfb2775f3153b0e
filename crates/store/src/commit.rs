//! Transactions, and how a batch of them is decided against one snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::backend::BackendError;
use crate::entry::{Change, Entry, Event, Metadata, Revision};
use crate::key::{Key, KeyError};
use crate::snapshot::Snapshot;

/// Writes that happen together or not at all, in order.
#[derive(Debug)]
pub struct Transaction<M> {
    pub(crate) writes: Vec<Write<M>>,
}

/// One write of a transaction.
#[derive(Clone, Debug)]
pub struct Write<M> {
    pub key: Key,
    pub expect: Expect,
    /// The new value with its metadata; `None` deletes.
    pub value: Option<(Bytes, M)>,
}

/// The precondition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing: the write creates.
    Absent,
    /// The version written at this revision.
    At(Revision),
}

/// The result of a transaction.
#[derive(Debug)]
pub struct Written<M> {
    /// The revision after it. The one before it, if nothing changed.
    pub revision: Revision,
    /// What stands at each key now, or stood there last if it was deleted.
    pub entries: Vec<Arc<Entry<M>>>,
}

/// The precondition of a write does not hold.
#[derive(Debug)]
pub struct Conflict<M> {
    pub key: Key,
    /// The current version, so that a retry need not read it again.
    pub current: Option<Arc<Entry<M>>>,
    pub revision: Revision,
}

/// Why a transaction failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<M> {
    #[error("{} has another version than the write expects", .0.key)]
    Conflict(Box<Conflict<M>>),
    #[error("could not encode the key of the object")]
    Key(#[from] KeyError),
    #[error("the write queue is full")]
    Busy,
    /// Whether it would survive a crash is unknown, so nothing more is written.
    #[error("the store rejects writes after a failed commit")]
    Failed(#[source] Arc<BackendError>),
    #[error("the store is shut down")]
    Closed,
}

/// A batch of transactions as decided: what to make durable, then publish.
#[derive(Debug)]
pub(crate) struct Staged<M> {
    pub(crate) revision: Revision,
    pub(crate) events: Vec<Arc<Event<M>>>,
    overlay: BTreeMap<Key, Option<Arc<Entry<M>>>>,
}

impl<M: Metadata> Transaction<M> {
    /// Creates one object.
    pub fn create(key: Key, value: Bytes) -> Self {
        Self::new(vec![Write::put(key, Expect::Absent, value)])
    }

    /// Replaces the version of one object that was written at `at`.
    pub fn update(key: Key, at: Revision, value: Bytes) -> Self {
        Self::new(vec![Write::put(key, Expect::At(at), value)])
    }

    /// Deletes the version of one object that was written at `at`.
    pub fn delete(key: Key, at: Revision) -> Self {
        Self::new(vec![Write::delete(key, at)])
    }

    pub fn new(writes: Vec<Write<M>>) -> Self {
        Self { writes }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.writes
            .iter()
            .filter_map(|write| write.value.as_ref())
            .map(|(value, _)| value.len())
            .sum()
    }
}

impl<M: Metadata> Write<M> {
    pub fn put(key: Key, expect: Expect, value: Bytes) -> Self {
        let meta = M::read(&key, &value);
        Self { key, expect, value: Some((value, meta)) }
    }

    pub fn delete(key: Key, at: Revision) -> Self {
        Self { key, expect: Expect::At(at), value: None }
    }
}

impl<M> Staged<M> {
    pub(crate) fn new(revision: Revision) -> Self {
        Self { revision, events: Vec::new(), overlay: BTreeMap::new() }
    }

    /// Decides one transaction on top of those staged before it.
    ///
    /// A put of the bytes that stand there already is not a write: it takes no revision and
    /// makes no event.
    pub(crate) fn stage(
        &mut self,
        base: &Snapshot<M>,
        transaction: Transaction<M>,
    ) -> Result<Written<M>, WriteError<M>> {
        for write in &transaction.writes {
            write.key.encode()?;
            let current = self.current(base, &write.key);
            let met = match (write.expect, &current) {
                (Expect::Absent, None) => true,
                (Expect::At(revision), Some(entry)) => entry.modified == revision,
                _ => false,
            };
            if !met {
                let key = write.key.clone();
                let conflict = Conflict { key, current, revision: self.revision };
                return Err(WriteError::Conflict(Box::new(conflict)));
            }
        }
        let entries = transaction.writes.into_iter().map(|write| self.take(base, write)).collect();
        Ok(Written { revision: self.revision, entries })
    }

    fn take(&mut self, base: &Snapshot<M>, write: Write<M>) -> Arc<Entry<M>> {
        let previous = self.current(base, &write.key);
        let revision = self.revision.next();
        let (entry, change) = match (write.value, &previous) {
            (Some((value, _)), Some(previous)) if previous.value == value => {
                return Arc::clone(previous);
            }
            (Some((value, meta)), _) => {
                let created = previous.as_ref().map_or(revision, |previous| previous.created);
                let change = if previous.is_some() { Change::Modified } else { Change::Created };
                let key = write.key.clone();
                (Arc::new(Entry { key, created, modified: revision, value, meta }), change)
            }
            (None, previous) => {
                let gone =
                    previous.as_ref().expect("a deletion expects a version, which was found");
                (Arc::clone(gone), Change::Deleted)
            }
        };
        let standing = (change != Change::Deleted).then(|| Arc::clone(&entry));
        self.overlay.insert(write.key, standing);
        self.revision = revision;
        let event = Event { revision, change, entry: Arc::clone(&entry), previous };
        self.events.push(Arc::new(event));
        entry
    }

    fn current(&self, base: &Snapshot<M>, key: &Key) -> Option<Arc<Entry<M>>> {
        match self.overlay.get(key) {
            Some(staged) => staged.clone(),
            None => base.get(key).cloned(),
        }
    }
}
