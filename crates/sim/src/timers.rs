//! Timers: at most one per key, the earliest first.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

#[derive(Debug)]
pub(crate) struct Timers<T> {
    by_instant: BTreeSet<(Timestamp, T)>,
    by_thing: BTreeMap<T, Timestamp>,
}

impl<T: Ord + Clone> Timers<T> {
    /// Sets the timer of a thing, in place of the one it had.
    pub(crate) fn set(&mut self, thing: T, instant: Timestamp) {
        self.clear(&thing);
        self.by_instant.insert((instant, thing.clone()));
        self.by_thing.insert(thing, instant);
    }

    pub(crate) fn clear(&mut self, thing: &T) {
        if let Some(instant) = self.by_thing.remove(thing) {
            self.by_instant.remove(&(instant, thing.clone()));
        }
    }

    /// Takes the next thing whose time has come.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<T> {
        let (instant, _) = self.by_instant.first()?;
        if *instant > now {
            return None;
        }
        let (_, thing) = self.by_instant.pop_first()?;
        self.by_thing.remove(&thing);
        Some(thing)
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.by_instant.first().map(|(instant, _)| *instant)
    }
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { by_instant: BTreeSet::new(), by_thing: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_order_and_once() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut timers = Timers::default();
        timers.set("a", at(3));
        timers.set("b", at(2));
        timers.set("a", at(1));
        timers.set("c", at(1));
        timers.clear(&"c");
        assert_eq!(timers.next(), Some(at(1)));
        assert_eq!((timers.pop(at(1)), timers.pop(at(1))), (Some("a"), None));
        assert_eq!((timers.pop(at(9)), timers.pop(at(9))), (Some("b"), None));
    }
}
