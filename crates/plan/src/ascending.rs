//! Entries of a sorted collection beside a walk in the same order: cheaper than looking each one up.

use std::cmp::Ordering;

/// Gives the entry at an index. Indices have to be asked for in ascending order, as `entries` are.
pub(crate) fn lookup<T>(
    entries: impl IntoIterator<Item = (usize, T)>,
) -> impl FnMut(usize) -> Option<T> {
    let mut entries = entries.into_iter();
    let mut next = entries.next();
    move |index| {
        // Mostly the next entry is further on, and stays where it is.
        while let Some((at, _)) = &next {
            match at.cmp(&index) {
                Ordering::Less => next = entries.next(),
                Ordering::Equal => {
                    let found = std::mem::replace(&mut next, entries.next());
                    return found.map(|(_, entry)| entry);
                }
                Ordering::Greater => break,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_and_passed_over() {
        let mut entry = lookup([(1, "b"), (2, "c"), (5, "f")]);
        assert_eq!([0, 1, 3, 5, 6].map(&mut entry), [None, Some("b"), None, Some("f"), None]);
    }
}
