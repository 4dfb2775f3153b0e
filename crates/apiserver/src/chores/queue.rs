//! A work queue: each item once, in order of arrival, with a delayed retry after a failure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use convoy_store::{Change, Key};
use jiff::{SignedDuration, Timestamp};

use super::Event;
use crate::metrics::Work;
use crate::status::ApiResult;

const FIRST_DELAY: SignedDuration = SignedDuration::from_secs(1);
const DOUBLINGS_MAX: u32 = 8;

#[derive(Debug)]
pub(super) struct Queue<T> {
    /// With the moment when they came, for the counts alone.
    order: VecDeque<(T, Instant)>,
    waiting: BTreeSet<T>,
    /// What failed: when to try again, and how often it did.
    later: BTreeMap<T, (Timestamp, u32)>,
    counts: Work,
}

impl<T: Clone + Ord> Queue<T> {
    pub(super) fn new(counts: Work) -> Self {
        let (order, waiting, later) = (VecDeque::new(), BTreeSet::new(), BTreeMap::new());
        Self { order, waiting, later, counts }
    }

    pub(super) fn add(&mut self, item: T) {
        if self.waiting.insert(item.clone()) {
            self.order.push_back((item, Instant::now()));
            self.counts.added(self.order.len());
        }
    }

    /// The next few.
    pub(super) fn take(&mut self, most: usize, now: Timestamp) -> Vec<T> {
        let due: Vec<T> = self
            .later
            .iter()
            .filter(|(_, (at, _))| *at <= now)
            .map(|(item, _)| item.clone())
            .collect();
        for item in due {
            self.add(item);
        }
        let count = most.min(self.order.len());
        let (taken, since): (Vec<T>, Vec<Instant>) = self.order.drain(..count).unzip();
        self.counts.taken(&since, self.order.len());
        for item in &taken {
            self.waiting.remove(item);
        }
        taken
    }

    /// Tries again after a while, longer each time.
    pub(super) fn fail(&mut self, item: T, now: Timestamp) {
        let failures = self.later.get(&item).map_or(0, |(_, failures)| *failures);
        let delay = FIRST_DELAY * (1 << failures.min(DOUBLINGS_MAX));
        let at = now.checked_add(delay).unwrap_or(now);
        self.later.insert(item, (at, failures + 1));
        self.counts.done(true);
    }

    /// Has the next one looked at, if there is one; whether there was.
    pub(super) async fn work<F>(&mut self, now: Timestamp, look_at: impl FnOnce(T) -> F) -> bool
    where
        F: Future<Output = ApiResult<bool>>,
        T: std::fmt::Debug,
    {
        let Some(item) = self.take(1, now).pop() else { return false };
        let done = look_at(item.clone()).await;
        if let Err(status) = &done {
            tracing::warn!(
                ?item,
                message = status.message,
                "could not process a queue item; retrying later"
            );
        }
        self.settle(item, done, now);
        true
    }

    /// Notes what became of work that was taken: done, or there is more of it, or it failed.
    fn settle(&mut self, item: T, has_more: ApiResult<bool>, now: Timestamp) {
        match has_more {
            Ok(has_more) => {
                self.succeed(&item);
                if has_more {
                    self.add(item);
                }
            }
            Err(_) => self.fail(item, now),
        }
    }

    /// What was taken is done.
    pub(super) fn succeed(&mut self, item: &T) {
        self.later.remove(item);
        self.counts.done(false);
    }

    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        self.later.values().map(|(at, _)| *at).min()
    }
}

/// The objects of one shelf that have come or changed.
#[derive(Debug)]
pub(super) struct ChangedObjects {
    shelf: &'static str,
    pub(super) queue: Queue<Key>,
}

impl ChangedObjects {
    pub(super) fn new(shelf: &'static str, counts: Work) -> Self {
        Self { shelf, queue: Queue::new(counts) }
    }

    pub(super) fn observe(&mut self, event: &Event) {
        let key = &event.entry.key;
        if key.shelf.resource == self.shelf && event.change != Change::Deleted {
            self.queue.add(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_wait_longer_each_time() {
        let mut queue = Queue::new(Work::default());
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let after = |seconds| start + SignedDuration::from_secs(seconds);
        queue.add("a");
        queue.add("b");
        queue.add("a");
        assert_eq!(queue.take(1, start), ["a"]);
        assert_eq!(queue.take(9, start), ["b"]);
        queue.fail("a", start);
        assert_eq!(queue.take(9, start), Vec::<&str>::new());
        assert_eq!(queue.wake_at(), Some(after(1)));
        assert_eq!(queue.take(9, after(1)), ["a"]);
        queue.fail("a", after(1));
        assert_eq!(queue.wake_at(), Some(after(3)));
        queue.succeed(&"a");
        assert_eq!(queue.wake_at(), None);
    }
}
