//! The order in which the decisions of a placement are rewritten.

use std::collections::{BTreeMap, BTreeSet};

/// One rewrite of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// Takes newcomers in and lets nobody go yet.
    Widen(usize),
    /// As it should be in the end.
    Settle(usize),
}

/// An order in which no cluster is ever missing from all slices: where one moves from slice
/// to slice, the slice it goes to is written first. `before` and `after` are the clusters of
/// each slice. Only slices that change are listed.
///
/// | moves                | order              | because                                |
/// |----------------------|--------------------|----------------------------------------|
/// | 0 to 1               | 1, 0               | 1 takes it in, then 0 lets go          |
/// | 0 to 1 and 1 to 2    | 2, 1, 0            | from the end of the chain              |
/// | 0 to 1 and 1 to 0    | wide 0, 1, 0       | 0 holds both for a moment              |
pub(crate) fn order(before: &[Vec<&str>], after: &[Vec<&str>]) -> Vec<Rewrite> {
    let mut home: BTreeMap<&str, usize> = BTreeMap::new();
    for (slice, clusters) in after.iter().enumerate() {
        home.extend(clusters.iter().map(|cluster| (*cluster, slice)));
    }
    let mut waits_for: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (slice, clusters) in before.iter().enumerate().take(after.len()) {
        if *clusters != after[slice] {
            let moved = clusters.iter().filter_map(|cluster| home.get(cluster).copied());
            waits_for.insert(slice, moved.filter(|to| *to != slice).collect());
        }
    }
    let mut rewrites = Vec::new();
    let mut holds: BTreeSet<usize> = BTreeSet::new(); // slices that hold all their newcomers
    while !waits_for.is_empty() {
        let free = waits_for
            .iter()
            .find(|(_, to)| to.iter().all(|to| holds.contains(to) || !waits_for.contains_key(to)))
            .map(|(slice, _)| *slice);
        let narrow = || waits_for.keys().copied().find(|slice| !holds.contains(slice));
        if let Some(slice) = free {
            waits_for.remove(&slice);
            holds.insert(slice);
            rewrites.push(Rewrite::Settle(slice));
        } else if let Some(slice) = narrow() {
            holds.insert(slice);
            rewrites.push(Rewrite::Widen(slice));
        } else {
            break; // unreachable: slices that all hold their newcomers are all free
        }
    }
    rewrites
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_moves_is_taken_in_before_it_is_let_go() {
        use Rewrite::{Settle, Widen};
        type Slices = &'static [&'static [&'static str]];
        let cases: [(Slices, Slices, &[Rewrite]); 5] = [
            (&[&["a"], &["b"]], &[&["a"], &["b"]], &[]),
            (&[&["a", "b"], &[]], &[&["a"], &["b"]], &[Settle(1), Settle(0)]),
            (&[&["a"], &["b"], &[]], &[&["n"], &["a"], &["b"]], &[Settle(2), Settle(1), Settle(0)]),
            (&[&["a"], &["b"]], &[&["b"], &["a"]], &[Widen(0), Settle(1), Settle(0)]),
            (&[&["a"], &["b"], &["c"]], &[&["b"], &["c"]], &[Settle(0), Settle(1)]),
        ];
        for (before, after, expected) in cases {
            let own = |slices: &[&[&'static str]]| -> Vec<Vec<&str>> {
                slices.iter().map(|slice| slice.to_vec()).collect()
            };
            assert_eq!(order(&own(before), &own(after)), expected, "{before:?} to {after:?}");
        }
    }
}
