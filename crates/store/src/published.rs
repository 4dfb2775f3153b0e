//! The state that readers see: the newest snapshot, and the logs that watches follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;

use crate::backend::{Loaded, Record};
use crate::entry::{Change, Entry, Event, Metadata, Revision};
use crate::key::Shelf;
use crate::log::Log;
use crate::snapshot::Snapshot;

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

impl<M: Metadata> Published<M> {
    pub(crate) fn load(loaded: Loaded) -> Self {
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

    /// Events that follow the newest state, from their durable form.
    pub(crate) fn events_of(&self, records: Vec<Record>) -> Vec<Arc<Event<M>>> {
        let latest = self.latest.load();
        records.into_iter().map(|record| Arc::new(event_of(record, &latest))).collect()
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

    /// The log of every event.
    pub(crate) fn everything(&self) -> Arc<Log<M>> {
        Arc::clone(&self.everything)
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

    pub(crate) fn close(&self) {
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
        (Change::Deleted, Some(last)) => Arc::clone(last),
        _ => match latest.get(&key).filter(|standing| standing.modified == revision) {
            Some(standing) => Arc::clone(standing),
            None => entry_at(revision, value),
        },
    };
    Event { revision, change, entry, previous }
}
