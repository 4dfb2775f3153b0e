//! What is to happen, by instant. What happens at one instant does so in an order that chance
//! gives.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Things to come.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    entries: BTreeMap<(Timestamp, u64, u64), T>,
    added: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), added: 0 }
    }
}

impl<T> Agenda<T> {
    pub(crate) fn add(&mut self, at: Timestamp, lot: u64, what: T) {
        self.added += 1;
        self.entries.insert((at, lot, self.added), what);
    }

    pub(crate) fn next(&mut self) -> Option<(Timestamp, T)> {
        let ((at, ..), what) = self.entries.pop_first()?;
        Some((at, what))
    }

    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        self.entries.first_key_value().map(|((at, ..), _)| *at)
    }
}
