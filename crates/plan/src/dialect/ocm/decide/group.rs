//! Decision groups: the selected clusters in ordered, numbered groups of at most so many.
//!
//! Groups are stable. A cluster that stays selected stays in its group; one that is new goes
//! to the last group with room, so that a rollout under way is not shuffled.

use std::collections::BTreeMap;

use convoy_api::Object;
use smol_str::SmolStr;

use crate::budget::{IntOrPercent, Rounding};
use crate::count;
use crate::dialect::ocm::read::decisions::Decisions;
use crate::dialect::ocm::read::placement::Grouping;

/// A group as it should be. Its number is its place in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group<'w> {
    /// Empty for clusters that no named group selects.
    pub(crate) name: SmolStr,
    /// By name.
    pub(crate) clusters: Vec<&'w str>,
}

/// The clusters of one named group, or of none, before they are cut.
struct Bucket<'w> {
    name: SmolStr,
    clusters: Vec<&'w str>,
}

/// The most clusters of one group, when `selected` are to be grouped.
///
/// | selected | per group | length | because                          |
/// |---------:|-----------|-------:|----------------------------------|
/// |      320 | 150       |    150 | a count is taken as it is        |
/// |        3 | 25%       |      1 | 0.75 rounds up                   |
/// |        5 | 0         |      5 | nothing sensible means no cutting |
/// |        5 | 9         |      5 | never more than there are        |
pub(crate) fn length(per_group: IntOrPercent, selected: u32) -> u32 {
    match per_group.resolve(selected, Rounding::Up) {
        0 => selected,
        length => length.min(selected),
    }
}

/// Cuts the `selected` clusters into groups, keeping those of `current` where they are.
pub(crate) fn groups<'w>(
    grouping: &Grouping,
    selected: &[&'w Object],
    current: &Decisions<'_>,
    compact: bool,
) -> Vec<Group<'w>> {
    let length = length(grouping.per_group, count(selected.len())) as usize;
    let buckets = buckets(grouping, selected);
    let stable = !compact && current.len() > 0 && !must_recut(grouping, current);
    let mut groups = Vec::new();
    for bucket in buckets {
        let cut =
            if stable { keep(&bucket, current, length) } else { chunks(&bucket.clusters, length) };
        let named = cut.into_iter().map(|clusters| Group { name: bucket.name.clone(), clusters });
        groups.extend(named);
    }
    if groups.is_empty() {
        groups.push(Group { name: SmolStr::default(), clusters: Vec::new() });
    }
    groups
}

/// Each named group takes what it selects and nobody took before; the rest has no name.
fn buckets<'w>(grouping: &Grouping, selected: &[&'w Object]) -> Vec<Bucket<'w>> {
    let names = grouping.named.iter().map(|named| named.name.clone());
    let mut buckets: Vec<Bucket<'w>> = names
        .chain([SmolStr::default()])
        .map(|name| Bucket { name, clusters: Vec::new() })
        .collect();
    for cluster in selected {
        let named = grouping.named.iter().position(|named| named.selector.matches(cluster));
        buckets[named.unwrap_or(grouping.named.len())].clusters.push(cluster.name().as_str());
    }
    for bucket in &mut buckets {
        bucket.clusters.sort_unstable();
    }
    buckets
}

/// Whether the strategy changed since the current groups were cut. Decisions that do not say
/// how they were cut are taken at their word while they could have been cut like this.
fn must_recut(grouping: &Grouping, current: &Decisions<'_>) -> bool {
    let length = length(grouping.per_group, count(current.len())) as usize;
    let could_not = || current.groups.iter().any(|group| group.clusters.len() > length);
    current.was_cut_with(&grouping.hash).map_or_else(could_not, |same| !same)
}

fn chunks<'w>(clusters: &[&'w str], length: usize) -> Vec<Vec<&'w str>> {
    clusters.chunks(length.max(1)).map(<[&str]>::to_vec).collect()
}

/// The current groups of a bucket without those who left, filled up with those who came: the
/// last group first, then holes from the back, then new groups at the end.
fn keep<'w>(bucket: &Bucket<'w>, current: &Decisions<'_>, length: usize) -> Vec<Vec<&'w str>> {
    let mut newcomers: BTreeMap<&str, &'w str> =
        bucket.clusters.iter().map(|cluster| (*cluster, *cluster)).collect();
    let mut groups: Vec<Vec<&'w str>> = Vec::new();
    for group in current.groups_by_name.iter().filter(|group| group.name == bucket.name) {
        // A group that became too large, because a share shrank, gives up its last members; those
        // who are still on their way go first.
        let members = group.clusters.iter().copied();
        let mut members: Vec<&str> =
            members.filter(|cluster| newcomers.contains_key(cluster)).collect();
        members.sort_by_key(|cluster| group.arriving.contains(cluster));
        let members = members.iter().take(length);
        let kept: Vec<&'w str> = members.filter_map(|cluster| newcomers.remove(cluster)).collect();
        if !kept.is_empty() {
            groups.push(kept);
        }
    }
    let mut at = groups.len();
    for newcomer in newcomers.into_values() {
        while at > 0 && groups[at - 1].len() >= length {
            at -= 1;
        }
        if at == 0 {
            groups.push(Vec::new());
            at = groups.len();
        }
        groups[at - 1].push(newcomer);
    }
    for group in &mut groups {
        group.sort_unstable();
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_round_up_and_stay_within_the_selection() {
        let cases = [
            (IntOrPercent::Int(150), 320, 150),
            (IntOrPercent::Percent(25), 3, 1),
            (IntOrPercent::Percent(20), 100, 20),
            (IntOrPercent::Int(0), 5, 5),
            (IntOrPercent::Int(-3), 5, 5),
            (IntOrPercent::Int(9), 5, 5),
            (IntOrPercent::Percent(100), 0, 0),
        ];
        for (per_group, selected, expected) in cases {
            assert_eq!(length(per_group, selected), expected, "{per_group:?} of {selected}");
        }
    }
}
