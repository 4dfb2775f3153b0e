//! Whose turn it is. Every key waits at most once, first come first served; what changes while
//! its turn runs puts it back at the end, so that nobody is starved by a busy neighbour.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

/// The first wait after a failure; each further one doubles it.
const RETRY_FIRST: Duration = Duration::from_millis(50);
/// Long enough to leave a struggling server alone, short enough that its return is noticed.
const RETRY_MAX: Duration = Duration::from_mins(1);

/// A fair queue of keys, with timers.
#[derive(Debug)]
pub struct Queue<K> {
    ready: VecDeque<K>,
    /// What is in `ready`.
    waiting: BTreeSet<K>,
    running: BTreeSet<K>,
    /// Running, and changed since.
    changed: BTreeSet<K>,
    timers: BTreeSet<(Timestamp, K)>,
    /// The same by key: each has at most one.
    alarms: BTreeMap<K, Timestamp>,
    failures: BTreeMap<K, u32>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            changed: BTreeSet::new(),
            timers: BTreeSet::new(),
            alarms: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl<K: Clone + Ord> Queue<K> {
    /// Asks for a turn of `key`, once, however often this is called before it comes.
    pub fn add(&mut self, key: K) {
        if self.running.contains(&key) {
            self.changed.insert(key);
        } else if self.waiting.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// The next key whose turn it is, which then runs until [`Queue::done`] or
    /// [`Queue::retry`].
    pub fn take(&mut self, now: Timestamp) -> Option<K> {
        self.fire(now);
        let key = self.ready.pop_front()?;
        self.waiting.remove(&key);
        // What it was to be woken for is looked at now.
        self.disarm(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// The turn went well; the next is at `wake_at`, or after a change.
    pub fn done(&mut self, key: &K, wake_at: Option<Timestamp>) {
        self.failures.remove(key);
        self.end(key, wake_at);
    }

    /// The turn did not get through: another follows, the later the more often that happened,
    /// and not before `at_least` has passed. A change brings it forward.
    pub fn retry(&mut self, key: &K, now: Timestamp, at_least: Duration) {
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = pause(*failures).max(at_least);
        *failures = failures.saturating_add(1);
        let at = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.end(key, Some(at));
    }

    /// When the next timer fires.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// How many wait for their turn now.
    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    /// How many failed the last time they had their turn.
    pub fn failing(&self) -> usize {
        self.failures.len()
    }

    pub fn running(&self) -> usize {
        self.running.len()
    }

    fn end(&mut self, key: &K, at: Option<Timestamp>) {
        self.running.remove(key);
        if let Some(at) = at {
            self.alarms.insert(key.clone(), at);
            self.timers.insert((at, key.clone()));
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
            self.add(key);
        }
    }

    fn disarm(&mut self, key: &K) {
        if let Some(at) = self.alarms.remove(key) {
            self.timers.remove(&(at, key.clone()));
        }
    }
}

/// How long to wait after so many failures before.
///
/// | failures before | pause  |
/// |----------------:|-------:|
/// |               0 |  50 ms |
/// |               1 | 100 ms |
/// |               5 |  1.6 s |
/// |              11 |   60 s |
fn pause(failures: u32) -> Duration {
    RETRY_FIRST.saturating_mul(1 << failures.min(16)).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    #[test]
    fn each_waits_once_and_in_turn() {
        let mut queue = Queue::default();
        for key in ["a", "b", "a", "c", "b"] {
            queue.add(key);
        }
        assert_eq!(queue.depth(), 3);
        let order: Vec<_> = std::iter::from_fn(|| queue.take(at(0))).collect();
        assert_eq!(order, ["a", "b", "c"]);
    }

    #[test]
    fn a_change_during_its_turn_puts_it_behind_the_others() {
        let mut queue = Queue::default();
        queue.add("a");
        assert_eq!(queue.take(at(0)), Some("a"));
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.take(at(0)), Some("b"));
        assert_eq!(queue.take(at(0)), None, "never twice at a time");
        queue.done(&"a", None);
        queue.done(&"b", None);
        assert_eq!(queue.take(at(0)), Some("a"));
        queue.done(&"a", None);
        assert_eq!(queue.take(at(0)), None);
        assert_eq!(queue.running(), 0);
    }

    #[test]
    fn timers_fire_on_the_instant_and_once() {
        let mut queue = Queue::default();
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
        let mut queue = Queue::default();
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
    fn failures_wait_longer_and_longer_until_one_goes_well() {
        let mut queue = Queue::default();
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
        assert_eq!((pause(11), pause(u32::MAX)), (RETRY_MAX, RETRY_MAX));
    }
}
