//! Sets of numbers as Jobs write them: `0-2,5`.

use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexes(BTreeSet<usize>);

/// Longer ranges are nobody's: the API server takes Jobs of up to 100,000 indexes.
const RANGE_MAX: usize = 1_000_000;

impl Indexes {
    /// Parts that cannot be read are left out.
    pub(crate) fn read(text: &str) -> Self {
        let ranges = text.split(',').filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (last.saturating_sub(first) < RANGE_MAX).then_some(first..=last)
        });
        Self(ranges.flatten().collect())
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0.contains(&index)
    }

    pub(crate) fn insert(&mut self, index: usize) {
        self.0.insert(index);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn text(&self) -> String {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for index in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *index => *last = *index,
                _ => ranges.push((*index, *index)),
            }
        }
        let parts = ranges.into_iter().map(|(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
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
        assert_eq!(Indexes::read("x,2,1,0").text(), "0-2");
        assert_eq!(Indexes::read("0-99999999999").len(), 0);
    }
}
