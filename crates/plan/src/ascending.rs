//! Entries of a sorted collection beside a walk in the same order: cheaper than looking each one up.

/// Gives the entry at an index. Indices have to be asked for in ascending order, as `entries` are.
pub(crate) fn lookup<T>(
    entries: impl IntoIterator<Item = (usize, T)>,
) -> impl FnMut(usize) -> Option<T> {
    let mut entries = entries.into_iter().peekable();
    move |index| {
        while entries.next_if(|(at, _)| *at < index).is_some() {}
        entries.next_if(|(at, _)| *at == index).map(|(_, entry)| entry)
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
