//! Events are kept for an hour after they were last written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use convoy_store::{Change, Key, Revision};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::encoding;
use crate::object_meta::Entry;
use crate::resource_request::ResourceRequest;
use crate::server::Server;
use crate::verb::delete::{DeleteOptions, Propagation, delete_named};

use super::collect::served;
use super::{BATCH, Event, is_to_repeat};

const LIFETIME: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Default)]
pub(super) struct Expiry {
    due: BTreeSet<(Timestamp, Key)>,
    /// The version that is due, and when.
    events: BTreeMap<Key, (Timestamp, Revision)>,
}

impl Expiry {
    /// An event that was there before: its own times tell when it was written.
    pub(super) fn begin(&mut self, entry: &Arc<Entry>) {
        if entry.key.shelf.resource != "events" {
            return;
        }
        let object = encoding::read_entry(entry);
        let places = [
            "/metadata/creationTimestamp",
            "/eventTime",
            "/lastTimestamp",
            "/series/lastObservedTime",
        ];
        let times = places.iter().filter_map(|place| {
            object.pointer(place).and_then(Value::as_str)?.parse::<Timestamp>().ok()
        });
        let written = times.max().unwrap_or(Timestamp::UNIX_EPOCH);
        self.note(&entry.key, written, entry.modified);
    }

    pub(super) fn observe(&mut self, server: &Server, event: &Event) {
        let entry = &event.entry;
        if entry.key.shelf.resource != "events" {
            return;
        }
        if event.change == Change::Deleted {
            self.forget(&entry.key);
        } else if self.events.get(&entry.key).is_none_or(|(_, known)| *known < entry.modified) {
            self.note(&entry.key, server.now(), entry.modified);
        }
    }

    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Deletes what has expired; whether anything had.
    pub(super) async fn step(&mut self, server: &Arc<Server>) -> bool {
        let now = server.now();
        let expired = self.due.iter().take_while(|(at, _)| *at <= now).take(BATCH);
        let expired: Vec<Key> = expired.map(|(_, key)| key.clone()).collect();
        let work = expired.into_iter().map(|key| async {
            let outcome = delete(server, &key, self.events.get(&key).map(|(_, at)| *at)).await;
            (key, outcome)
        });
        let outcomes = join_all(work).await;
        for (key, is_done) in &outcomes {
            self.forget(key);
            if !is_done {
                let snapshot = server.store.snapshot();
                if let Some(entry) = snapshot.get(key) {
                    self.note(key, now, entry.modified);
                }
            }
        }
        !outcomes.is_empty()
    }

    fn note(&mut self, key: &Key, written: Timestamp, revision: Revision) {
        self.forget(key);
        let at = written.checked_add(LIFETIME).unwrap_or(written);
        self.due.insert((at, key.clone()));
        self.events.insert(key.clone(), (at, revision));
    }

    fn forget(&mut self, key: &Key) {
        if let Some((at, _)) = self.events.remove(key) {
            self.due.remove(&(at, key.clone()));
        }
    }
}

/// Whether the event is gone, or has been written again.
async fn delete(server: &Arc<Server>, key: &Key, at: Option<Revision>) -> bool {
    let snapshot = server.store.snapshot();
    let Some(entry) = snapshot.get(key).filter(|entry| Some(entry.modified) == at) else {
        return true;
    };
    let Some((cluster, resource)) = served(server, key) else { return true };
    let request = ResourceRequest::internal(server, &cluster, &resource, &key.namespace, &key.name);
    let options = DeleteOptions::fenced(Propagation::Background, &entry.meta.uid, entry.modified.0);
    !is_to_repeat(&delete_named(&request, &key.name, &options).await)
}
