//! What watches keep for clients that do not read: bounded for each watch, and for all of them.
//!
//! A watch produces its next text when its client has taken the last one, so it keeps one event at
//! most, the objects that it begins with, and what its connection buffers. When all of them keep
//! too much, those whose clients have read nothing for the longest time expire: what they keep is
//! dropped, and their clients get 410 if they read again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connections::ClientConnection;
use crate::object_meta::Entry;
use crate::status::{ApiResult, Status};

/// Watches that may be open at a time. An idle one takes a few KiB.
const WATCHES_MAX: usize = 32_768;

/// How much text is handed to the connection at a time.
const PIECE: usize = 64 << 10;

/// What the connection keeps of a watch that is not read: a piece, a buffer of HTTP, one of TLS.
const BUFFERED: usize = 3 * PIECE;

/// How long a client may leave the objects that its watch begins with unread. They are versions
/// that the store may have dropped.
const INITIAL_TIMEOUT: Duration = Duration::from_mins(1);

/// How often watches that are not read are looked for.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// What a client is told whose watch has expired.
pub(crate) const EXPIRED: &str = "The watch was not read for too long, and the server had to drop \
    its events: list again, and watch from there";

/// The backlogs of all watches.
#[derive(Debug)]
pub(crate) struct Backlogs {
    bytes_max: usize,
    bytes: AtomicUsize,
    begun: Instant,
    slots: Mutex<WatchSlots>,
}

#[derive(Debug, Default)]
struct WatchSlots {
    last_number: u64,
    open: BTreeMap<u64, Arc<WatchSlot>>,
}

/// What one watch keeps. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Backlog {
    all: Arc<Backlogs>,
    number: u64,
    slot: Arc<WatchSlot>,
}

/// Where an expired watch was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchExpiry {
    BetweenEvents,
    WithinAnEvent,
}

#[derive(Debug, Default)]
struct WatchSlot {
    /// What is counted for text that was handed over and not asked beyond; 0 if it was.
    unread: AtomicUsize,
    /// Since when, in milliseconds of the server's life.
    since: AtomicU64,
    is_expired: AtomicBool,
    kept: Mutex<Unsent>,
}

#[derive(Debug, Default)]
struct Unsent {
    initial: VecDeque<Arc<Entry>>,
    /// The rest of the text of which a piece was handed over.
    text: Bytes,
    expiry: Option<WatchExpiry>,
    connection: Option<Arc<ClientConnection>>,
}

impl Backlogs {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        let (bytes, begun, slots) = (AtomicUsize::new(0), Instant::now(), Mutex::default());
        Arc::new(Self { bytes_max, bytes, begun, slots })
    }

    /// The backlog of a new watch, which begins with `initial`.
    pub(crate) fn open(self: &Arc<Self>, initial: VecDeque<Arc<Entry>>) -> ApiResult<Backlog> {
        let slot = Arc::new(WatchSlot::default());
        slot.kept.lock().initial = initial;
        let mut slots = self.slots.lock();
        if slots.open.len() >= WATCHES_MAX {
            let message = format!("too many watches: {WATCHES_MAX} are open; close some of them");
            return Err(Status::too_many_requests(message, 1));
        }
        slots.last_number += 1;
        let number = slots.last_number;
        slots.open.insert(number, Arc::clone(&slot));
        Ok(Backlog { all: Arc::clone(self), number, slot })
    }

    /// Expires watches whose initial objects nobody reads, and closes the connections of those
    /// that expired before and were not read since.
    pub(crate) fn sweep(&self) {
        let now = self.now();
        let limit = u64::try_from(INITIAL_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        let open: Vec<Arc<WatchSlot>> = self.slots.lock().open.values().cloned().collect();
        for slot in open {
            if slot.is_expired.load(Ordering::Relaxed) {
                if let Some(connection) = slot.kept.lock().connection.take() {
                    connection.hang_up();
                }
            } else if slot.unread.load(Ordering::Relaxed) > 0
                && now.saturating_sub(slot.since.load(Ordering::Relaxed)) > limit
                && !slot.kept.lock().initial.is_empty()
            {
                self.expire(&slot);
            }
        }
    }

    /// Expires watches, those first that were not read for the longest time, until an eighth of
    /// the bound is free: so the search is rare.
    fn make_room(&self) {
        let open: Vec<Arc<WatchSlot>> = self.slots.lock().open.values().cloned().collect();
        let mut unread: Vec<_> = open
            .into_iter()
            .filter(|slot| slot.unread.load(Ordering::Relaxed) > 0)
            .map(|slot| (slot.since.load(Ordering::Relaxed), slot))
            .collect();
        unread.sort_by_key(|(since, _)| *since);
        let wanted = self.bytes_max - self.bytes_max / 8;
        let mut expired = 0;
        for (_, slot) in unread {
            if self.bytes.load(Ordering::Relaxed) <= wanted {
                break;
            }
            self.expire(&slot);
            expired += 1;
        }
        let limit = self.bytes_max;
        tracing::warn!(expired, limit, "expired watches whose clients do not read");
    }

    fn expire(&self, slot: &WatchSlot) {
        let unread = slot.unread.swap(0, Ordering::Relaxed);
        if unread == 0 {
            return; // it was read in the meantime
        }
        self.bytes.fetch_sub(unread, Ordering::Relaxed);
        let mut kept = slot.kept.lock();
        let is_torn = !kept.text.is_empty();
        kept.expiry =
            Some(if is_torn { WatchExpiry::WithinAnEvent } else { WatchExpiry::BetweenEvents });
        kept.initial = VecDeque::new();
        kept.text = Bytes::new();
        slot.is_expired.store(true, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Backlog {
    pub(crate) fn attach(&self, connection: &Arc<ClientConnection>) {
        self.slot.kept.lock().connection = Some(Arc::clone(connection));
    }

    pub(crate) fn has_initial(&self) -> bool {
        !self.slot.kept.lock().initial.is_empty()
    }

    pub(crate) fn next_initial(&self) -> Option<Arc<Entry>> {
        self.slot.kept.lock().initial.pop_front()
    }

    pub(crate) fn expiry(&self) -> Option<WatchExpiry> {
        self.slot.kept.lock().expiry
    }

    /// The client has taken all that was handed over; more of the same text, if there is any.
    pub(crate) fn next_piece(&self) -> Option<Bytes> {
        self.settle();
        let mut kept = self.slot.kept.lock();
        if kept.text.is_empty() {
            return None;
        }
        let length = kept.text.len().min(PIECE);
        // Copied, so that a piece that is not read does not keep all of the text.
        let piece = Bytes::copy_from_slice(&kept.text[..length]);
        kept.text.advance(length);
        if kept.text.is_empty() {
            kept.text = Bytes::new();
        }
        let left = kept.text.len();
        drop(kept);
        self.charge(left);
        Some(piece)
    }

    /// Hands text over: the first piece of it.
    pub(crate) fn send(&self, text: Vec<u8>) -> Bytes {
        if text.len() > PIECE {
            self.slot.kept.lock().text = Bytes::from(text);
            return self.next_piece().unwrap_or_default();
        }
        self.charge(0);
        Bytes::from(text)
    }

    fn settle(&self) {
        let unread = self.slot.unread.swap(0, Ordering::Relaxed);
        self.all.bytes.fetch_sub(unread, Ordering::Relaxed);
    }

    fn charge(&self, text: usize) {
        let unread = BUFFERED + text;
        self.slot.since.store(self.all.now(), Ordering::Relaxed);
        let before = self.all.bytes.fetch_add(unread, Ordering::Relaxed);
        self.slot.unread.store(unread, Ordering::Relaxed);
        if before + unread > self.all.bytes_max {
            self.all.make_room();
        }
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.all.slots.lock().open.remove(&self.number);
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_handed_over_in_pieces() {
        let all = Backlogs::new(1 << 20);
        let watch = all.open(VecDeque::new()).unwrap();
        assert_eq!(watch.send(vec![b'a'; 10]).len(), 10);
        assert_eq!(all.bytes.load(Ordering::Relaxed), BUFFERED);
        assert_eq!(watch.next_piece(), None);
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0, "all was taken");
        assert_eq!(watch.send(vec![b'a'; 2 * PIECE + 1]).len(), PIECE);
        assert_eq!(all.bytes.load(Ordering::Relaxed), BUFFERED + PIECE + 1);
        assert_eq!(watch.next_piece().unwrap().len(), PIECE);
        assert_eq!(watch.next_piece().unwrap().len(), 1);
        assert_eq!(watch.next_piece(), None);
        drop(watch);
        assert_eq!((all.bytes.load(Ordering::Relaxed), all.slots.lock().open.len()), (0, 0));
    }

    #[test]
    fn the_longest_unread_watch_expires_first() {
        let all = Backlogs::new(10 * BUFFERED);
        let open = || all.open(VecDeque::new()).unwrap();
        let (torn, read) = (open(), open());
        torn.send(vec![b'a'; BUFFERED]);
        read.send(vec![b'a'; 10]);
        assert_eq!(read.next_piece(), None);
        // Of those that came in the same millisecond, the oldest watch goes first.
        let others: Vec<_> = (0..8).map(|_| open()).collect();
        for other in &others {
            other.send(vec![b'a'; 10]);
        }
        let whole = open();
        whole.send(vec![b'a'; 10]);
        assert_eq!(torn.expiry(), Some(WatchExpiry::WithinAnEvent));
        assert_eq!((whole.expiry(), read.expiry()), (None, None));
        assert!(all.bytes.load(Ordering::Relaxed) <= all.bytes_max);
        assert_eq!(torn.next_piece(), None, "what it kept is gone");
    }
}
