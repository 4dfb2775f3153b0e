//! The events of a simulation by instant. The order of events at the same instant is random.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Scheduled events.
#[derive(Debug)]
pub(crate) struct Timeline<T> {
    entries: BTreeMap<(Timestamp, u64, u64), T>,
    added: u64,
}

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), added: 0 }
    }
}

impl<T> Timeline<T> {
    pub(crate) fn add(&mut self, at: Timestamp, tie_breaker: u64, what: T) {
        self.added += 1;
        self.entries.insert((at, tie_breaker, self.added), what);
    }

    pub(crate) fn next(&mut self) -> Option<(Timestamp, T)> {
        let ((at, ..), what) = self.entries.pop_first()?;
        Some((at, what))
    }

    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        self.entries.first_key_value().map(|((at, ..), _)| *at)
    }
}
