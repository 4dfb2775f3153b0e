//! The work queue. Every key waits at most once, first come, first served; a key that changes
//! while it is processed goes to the end, so that a busy rollout does not starve the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

/// The delay after the first failure; each further failure doubles it.
const RETRY_FIRST: Duration = Duration::from_millis(50);
/// Long enough to spare an overloaded server, short enough to notice its recovery.
const RETRY_MAX: Duration = Duration::from_mins(1);

/// A fair queue of keys, with timers.
#[derive(Debug)]
pub struct WorkQueue<K> {
    ready: VecDeque<K>,
    /// The keys in `ready`.
    waiting: BTreeSet<K>,
    running: BTreeSet<K>,
    /// Keys that changed while they are running.
    changed: BTreeSet<K>,
    timers: BTreeSet<(Timestamp, K)>,
    /// The same by key: each has at most one timer.
    alarms: BTreeMap<K, Timestamp>,
    /// Running keys that a change made due before their timer.
    early: BTreeSet<K>,
    /// Until when changes are collected, by key.
    rests: BTreeMap<K, Timestamp>,
    /// By key that failed the last time, how many failures came after a full back-off.
    failures: BTreeMap<K, u32>,
}

impl<K> Default for WorkQueue<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            changed: BTreeSet::new(),
            timers: BTreeSet::new(),
            alarms: BTreeMap::new(),
            early: BTreeSet::new(),
            rests: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl<K: Clone + Ord> WorkQueue<K> {
    /// Queues `key`, once, however often this is called before it is taken; if it rests, for the
    /// end of its rest.
    pub fn add(&mut self, key: K) {
        if self.running.contains(&key) {
            self.changed.insert(key);
        } else if let Some(until) = self.rests.get(&key).copied() {
            self.arm(&key, until);
        } else if self.waiting.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Changes make `key`, which runs, due no earlier than `until`: what changes before is
    /// processed in one turn.
    pub fn rest(&mut self, key: &K, until: Timestamp) {
        self.rests.insert(key.clone(), until);
    }

    /// The next key, which then runs until [`WorkQueue::done`] or [`WorkQueue::retry`].
    pub fn take(&mut self, now: Timestamp) -> Option<K> {
        self.fire(now);
        let key = self.ready.pop_front()?;
        self.waiting.remove(&key);
        self.rests.remove(&key);
        // Its timer is obsolete: it is processed now.
        if self.disarm(&key) {
            self.early.insert(key.clone());
        }
        self.running.insert(key.clone());
        Some(key)
    }

    /// `key` was processed; it is due again at `wake_at`, or after a change.
    pub fn done(&mut self, key: &K, wake_at: Option<Timestamp>) {
        self.failures.remove(key);
        self.end(key, wake_at);
    }

    /// Processing `key` failed: it is retried with exponential back-off, not before `at_least`
    /// has passed. A change makes it due at once, and a failure then does not lengthen the
    /// back-off: a key that changes ten times in a second would otherwise wait for a minute.
    pub fn retry(&mut self, key: &K, now: Timestamp, at_least: Duration) {
        let waited = !self.early.contains(key);
        let earlier = match self.failures.get(key) {
            Some(failures) if waited => failures.saturating_add(1),
            Some(failures) => *failures,
            None => 0,
        };
        self.failures.insert(key.clone(), earlier);
        let backoff = backoff(earlier).max(at_least);
        let at = now.checked_add(backoff).unwrap_or(Timestamp::MAX);
        self.end(key, Some(at));
    }

    /// `key` was taken but cannot be processed yet; the caller adds it again.
    pub(crate) fn suspend(&mut self, key: &K) {
        self.running.remove(key);
        self.changed.remove(key);
        self.early.remove(key);
    }

    /// When the next timer fires.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// How many keys are ready.
    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    /// How many keys failed the last time they were processed.
    pub fn failing(&self) -> usize {
        self.failures.len()
    }

    pub fn running(&self) -> usize {
        self.running.len()
    }

    fn end(&mut self, key: &K, at: Option<Timestamp>) {
        self.running.remove(key);
        self.early.remove(key);
        if let Some(at) = at {
            self.arm(key, at);
        }
        if self.changed.remove(key) {
            self.add(key.clone());
        }
    }

    fn fire(&mut self, now: Timestamp) {
        while let Some((at, _)) = self.timers.first() {
            if *at > now {
                return;
            }
            let Some((_, key)) = self.timers.pop_first() else { return };
            self.alarms.remove(&key);
            self.rests.remove(&key);
            self.add(key);
        }
    }

    /// Makes `key` due at `at`, or earlier if its timer says so.
    fn arm(&mut self, key: &K, at: Timestamp) {
        if self.alarms.get(key).is_some_and(|armed| *armed <= at) {
            return;
        }
        self.disarm(key);
        self.alarms.insert(key.clone(), at);
        self.timers.insert((at, key.clone()));
    }

    /// Removes the timer of `key`; false if it has none.
    fn disarm(&mut self, key: &K) -> bool {
        let armed = self.alarms.remove(key);
        armed.is_some_and(|at| self.timers.remove(&(at, key.clone())))
    }
}

/// The back-off after a number of earlier failures.
///
/// | earlier failures | delay |
/// |-----------------:|------:|
/// |                0 | 50 ms |
/// |                1 | 100 ms |
/// |                5 | 1.6 s |
/// |               11 |  60 s |
fn backoff(failures: u32) -> Duration {
    RETRY_FIRST.saturating_mul(1 << failures.min(16)).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    #[test]
    fn each_key_waits_once_and_in_order() {
        let mut queue = WorkQueue::default();
        for key in ["a", "b", "a", "c", "b"] {
            queue.add(key);
        }
        assert_eq!(queue.depth(), 3);
        let order: Vec<_> = std::iter::from_fn(|| queue.take(at(0))).collect();
        assert_eq!(order, ["a", "b", "c"]);
    }

    #[test]
    fn a_key_that_changes_while_it_runs_goes_behind_the_others() {
        let mut queue = WorkQueue::default();
        queue.add("a");
        assert_eq!(queue.take(at(0)), Some("a"));
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.take(at(0)), Some("b"));
        assert_eq!(queue.take(at(0)), None, "never twice at once");
        queue.done(&"a", None);
        queue.done(&"b", None);
        assert_eq!(queue.take(at(0)), Some("a"));
        queue.done(&"a", None);
        assert_eq!(queue.take(at(0)), None);
        assert_eq!(queue.running(), 0);
    }

    #[test]
    fn timers_fire_on_the_instant_and_once() {
        let mut queue = WorkQueue::default();
        queue.add("a");
        queue.take(at(0));
        queue.done(&"a", Some(at(10)));
        assert_eq!(queue.next_wake(), Some(at(10)));
        assert_eq!(queue.take(at(9)), None);
        assert_eq!(queue.take(at(10)), Some("a"));
        queue.done(&"a", None);
        assert_eq!((queue.take(at(20)), queue.next_wake()), (None, None));
    }

    #[test]
    fn a_turn_before_the_timer_replaces_it() {
        let mut queue = WorkQueue::default();
        queue.add("a");
        queue.take(at(0));
        queue.done(&"a", Some(at(10)));
        queue.add("a");
        assert_eq!(queue.take(at(1)), Some("a"));
        queue.done(&"a", Some(at(30)));
        assert_eq!(queue.next_wake(), Some(at(30)));
        assert_eq!(queue.take(at(10)), None);
    }

    #[test]
    fn what_changes_during_a_rest_is_one_turn_at_its_end() {
        let mut queue = WorkQueue::default();
        queue.add("a");
        assert_eq!(queue.take(at(0)), Some("a"));
        queue.rest(&"a", at(5));
        queue.add("a");
        queue.done(&"a", Some(at(30)));
        queue.add("a");
        assert_eq!((queue.depth(), queue.next_wake()), (0, Some(at(5))));
        assert_eq!(queue.take(at(4)), None);
        assert_eq!(queue.take(at(5)), Some("a"));
        queue.done(&"a", None);
        queue.add("a");
        assert_eq!(
            queue.take(at(5)),
            Some("a"),
            "only a turn that asks for a rest is followed by one"
        );
    }

    #[test]
    fn a_timer_ends_a_rest() {
        let mut queue = WorkQueue::default();
        queue.add("a");
        queue.take(at(0));
        queue.rest(&"a", at(5));
        queue.done(&"a", Some(at(2)));
        queue.add("a");
        assert_eq!(queue.take(at(2)), Some("a"));
    }

    #[test]
    fn after_a_rest_a_change_is_due_at_once() {
        let mut queue = WorkQueue::default();
        queue.add("a");
        queue.take(at(0));
        queue.rest(&"a", at(5));
        queue.done(&"a", None);
        assert_eq!((queue.take(at(6)), queue.next_wake()), (None, None), "nothing changed");
        queue.add("a");
        assert_eq!(queue.take(at(6)), Some("a"));
    }

    #[test]
    fn failures_wait_longer_and_longer_until_one_goes_well() {
        let mut queue = WorkQueue::default();
        queue.add("a");
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..3 {
            assert_eq!(queue.take(now), Some("a"));
            queue.retry(&"a", now, Duration::ZERO);
            let next = queue.next_wake().unwrap();
            pauses.push(next.duration_since(now).as_millis());
            now = next;
        }
        assert_eq!(pauses, [50, 100, 200]);
        queue.take(now);
        queue.retry(&"a", now, Duration::from_secs(7));
        assert_eq!(queue.next_wake(), Some(now + Duration::from_secs(7)));
        queue.take(now + Duration::from_secs(7));
        queue.done(&"a", None);
        queue.add("a");
        queue.take(now);
        queue.retry(&"a", now, Duration::ZERO);
        assert_eq!(queue.next_wake(), Some(now + Duration::from_millis(50)));
        assert_eq!((backoff(11), backoff(u32::MAX)), (RETRY_MAX, RETRY_MAX));
    }

    #[test]
    fn failures_that_changes_bring_about_do_not_lengthen_the_wait() {
        let mut queue = WorkQueue::default();
        let now = at(0);
        for _ in 0..20 {
            queue.add("a");
            assert_eq!(queue.take(now), Some("a"));
            queue.retry(&"a", now, Duration::ZERO);
        }
        assert_eq!(queue.next_wake(), Some(now + Duration::from_millis(50)));
        let due = now + Duration::from_millis(50);
        assert_eq!(queue.take(due), Some("a"));
        queue.retry(&"a", due, Duration::ZERO);
        assert_eq!(queue.next_wake(), Some(due + Duration::from_millis(100)));
    }
}
