//! Sets of numbers as Jobs write them: `0-2,5`.
//!
//! They are kept as ranges, because a range of a few letters may stand for billions of numbers.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that neither touch nor overlap: the first number of each, and the one after its last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexes(BTreeMap<usize, usize>);

impl Indexes {
    /// Parts that cannot be read are left out.
    pub(crate) fn read(text: &str) -> Self {
        let ranges = text.split(',').filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            Some(first..last.checked_add(1)?)
        });
        let mut indexes = Self::default();
        for range in ranges.filter(|range| !range.is_empty()) {
            indexes.add(range);
        }
        indexes
    }

    pub(crate) fn insert(&mut self, index: usize) {
        if let Some(end) = index.checked_add(1) {
            self.add(index..end);
        }
    }

    fn add(&mut self, Range { mut start, mut end }: Range<usize>) {
        while let Some((first, after)) = self.0.range(..=end).next_back().map(|(a, b)| (*a, *b)) {
            if after < start {
                break;
            }
            (start, end) = (start.min(first), end.max(after));
            self.0.remove(&first);
        }
        self.0.insert(start, end);
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0.range(..=index).next_back().is_some_and(|(_, end)| index < *end)
    }

    /// The numbers of either set.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for (start, end) in &other.0 {
            all.add(*start..*end);
        }
        all
    }

    /// How many numbers both sets have.
    pub(crate) fn shared(&self, other: &Self) -> usize {
        let both = self.len().saturating_add(other.len());
        both.saturating_sub(self.union(other).len())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().fold(0, |sum, (start, end)| sum.saturating_add(end - start))
    }

    /// The numbers below `end` that are not in the set, the lowest first.
    pub(crate) fn free_below(&self, end: usize) -> impl Iterator<Item = usize> {
        let before = [0].into_iter().chain(self.0.values().copied());
        let after = self.0.keys().copied().chain([end]);
        before.zip(after).flat_map(move |(from, to)| from..to.min(end))
    }

    pub(crate) fn text(&self) -> String {
        let parts = self.0.iter().map(|(start, end)| match end - 1 {
            last if last == *start => start.to_string(),
            last => format!("{start}-{last}"),
        });
        parts.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written() {
        for text in ["", "0", "0-2,5", "1,3,7-9"] {
            assert_eq!(Indexes::read(text).text(), text);
        }
        let cases = [("x,2,1,0", "0-2"), ("5-9,0-6", "0-9"), ("0-1,4,2-3", "0-4"), ("3-1,7", "7")];
        for (text, want) in cases {
            assert_eq!(Indexes::read(text).text(), want, "{text}");
        }
        assert_eq!(Indexes::read("0-99999999999").len(), 100_000_000_000);
        assert_eq!(Indexes::read(&format!("0-{}", usize::MAX)).len(), 0);
    }

    #[test]
    fn sets_are_compared_as_ranges() {
        let (one, other) = (Indexes::read("0-4,8"), Indexes::read("3-9"));
        assert_eq!((one.union(&other).text(), one.shared(&other)), ("0-9".to_owned(), 3));
        assert_eq!(
            [0, 4, 5, 8, 9].map(|index| one.contains(index)),
            [true, true, false, true, false]
        );
    }

    #[test]
    fn what_is_free_is_found_without_counting_through_ranges() {
        let mut indexes = Indexes::read("1,3-2000000000");
        indexes.insert(0);
        let free = |indexes: &Indexes, end| indexes.free_below(end).take(3).collect::<Vec<_>>();
        assert_eq!(free(&indexes, 2_147_483_647), [2, 2_000_000_001, 2_000_000_002]);
        assert_eq!(free(&indexes, 3), [2]);
        assert_eq!(free(&indexes, 0), [0; 0]);
        assert_eq!(free(&Indexes::default(), 2), [0, 1]);
        assert_eq!(indexes.len(), 2_000_000_000);
    }
}
