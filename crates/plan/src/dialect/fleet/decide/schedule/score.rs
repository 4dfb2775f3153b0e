//! Which clusters are better: by how they spread over topology domains, by affinity, and by
//! whether they carry the resources already.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::text::Quantity;

use crate::dialect::fleet::read::member::property;
use crate::dialect::fleet::read::policy::{Preference, SchedulingPolicy, Sorter, Spread};

/// What breaking a constraint that does not filter costs.
const VIOLATION: i32 = 1000;

/// The affinity score of every cluster, in the order given.
///
/// A sorted preference compares a cluster with the smallest and the largest value that any
/// cluster reports, so all of them are looked at, eligible or not.
pub(crate) fn affinities(policy: &SchedulingPolicy<'_>, clusters: &[&Object]) -> Vec<i32> {
    let mut scores = vec![0_i32; clusters.len()];
    for term in &policy.preferred {
        let range = term.sorter.and_then(|sorter| range(sorter, clusters));
        for (score, cluster) in scores.iter_mut().zip(clusters) {
            if term.matches(cluster) {
                *score = score.saturating_add(preference(term, range, cluster));
            }
        }
    }
    scores
}

fn range(sorter: Sorter<'_>, clusters: &[&Object]) -> Option<(Quantity, Quantity)> {
    let values = || clusters.iter().filter_map(|cluster| property(cluster, sorter.property));
    Some((values().min()?, values().max()?))
}

fn preference(term: &Preference<'_>, range: Option<(Quantity, Quantity)>, cluster: &Object) -> i32 {
    let Some(sorter) = term.sorter else {
        return term.weight;
    };
    match (range, property(cluster, sorter.property)) {
        (Some(range), Some(value)) => sorted(term.weight, range, value, sorter.ascending),
        _ => 0,
    }
}

/// A share of `weight` by where `value` lies between the ends, halves away from zero.
///
/// | weight | range | value | order      | score | because                  |
/// |-------:|-------|------:|------------|------:|--------------------------|
/// |     50 | 0..10 |     3 | Descending |    15 | 50 * 3/10                |
/// |     50 | 0..10 |     3 | Ascending  |    35 | 50 * 7/10                |
/// |     25 | 0..10 |     1 | Descending |     3 | 2.5 rounds away from zero |
/// |    -25 | 0..10 |     1 | Descending |    -3 | likewise                 |
/// |     50 | 4..4  |     4 | Ascending  |     0 | all are alike            |
fn sorted(weight: i32, (min, max): (Quantity, Quantity), value: Quantity, ascending: bool) -> i32 {
    let span = max.saturating_sub(min).as_nanos();
    if span == 0 {
        return 0;
    }
    let part = if ascending { max.saturating_sub(value) } else { value.saturating_sub(min) };
    let product = part.as_nanos().saturating_mul(i128::from(weight));
    let doubled = product.saturating_mul(2).saturating_add(product.signum().saturating_mul(span));
    i32::try_from(doubled / span.saturating_mul(2)).unwrap_or(0)
}

/// How picked clusters are spread over the domains of each constraint.
#[derive(Clone, Debug)]
pub(crate) struct Topology<'w> {
    constraints: Vec<Domains<'w>>,
}

#[derive(Clone, Debug)]
struct Domains<'w> {
    spread: Spread<'w>,
    /// Per cluster, the domain it lies in.
    of_cluster: Vec<Option<usize>>,
    /// Per domain, how many clusters are picked. Empty domains count.
    counts: Vec<i64>,
    extremes: Extremes,
}

#[derive(Clone, Copy, Debug, Default)]
struct Extremes {
    smallest: i64,
    second_smallest: i64,
    largest: i64,
}

impl<'w> Topology<'w> {
    pub(crate) fn new(policy: &SchedulingPolicy<'w>, clusters: &[&Object]) -> Self {
        let constraints = policy.spread.iter().map(|spread| Domains::new(*spread, clusters));
        Self { constraints: constraints.collect() }
    }

    /// Counts one more picked cluster. [`Topology::settle`] follows once all are counted.
    pub(crate) fn count(&mut self, cluster: usize) {
        for constraint in &mut self.constraints {
            if let Some(domain) = constraint.of_cluster.get(cluster).copied().flatten() {
                constraint.counts[domain] += 1;
            }
        }
    }

    pub(crate) fn settle(&mut self) {
        for constraint in &mut self.constraints {
            constraint.extremes = extremes(&constraint.counts);
        }
    }

    /// The score of picking `cluster` next; the constraint it would break if that keeps it out.
    pub(crate) fn score(&self, cluster: usize) -> Result<i32, Spread<'w>> {
        let mut score: i32 = 0;
        for constraint in &self.constraints {
            let Some(domain) = constraint.of_cluster.get(cluster).copied().flatten() else {
                continue;
            };
            let change = skew_change(constraint.counts[domain], constraint.extremes);
            let skew = constraint.extremes.largest - constraint.extremes.smallest;
            let violated = skew.saturating_add(i64::from(change)) > constraint.spread.max_skew;
            match (violated, constraint.spread.filters) {
                (true, true) => return Err(constraint.spread),
                (true, false) => score = score.saturating_sub(VIOLATION),
                (false, _) => score = score.saturating_sub(change),
            }
        }
        Ok(score)
    }
}

impl<'w> Domains<'w> {
    fn new(spread: Spread<'w>, clusters: &[&Object]) -> Self {
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let of_cluster = clusters
            .iter()
            .map(|cluster| {
                let next = known.len();
                cluster.label(spread.key).map(|value| *known.entry(value).or_insert(next))
            })
            .collect();
        let counts = vec![0; known.len()];
        Self { spread, of_cluster, counts, extremes: Extremes::default() }
    }
}

fn extremes(counts: &[i64]) -> Extremes {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let smallest = sorted.first().copied().unwrap_or(0);
    Extremes {
        smallest,
        second_smallest: sorted.get(1).copied().unwrap_or(smallest),
        largest: sorted.last().copied().unwrap_or(smallest),
    }
}

/// By how much the skew changes when a domain of `count` gets one more.
///
/// | counts  | into | change | because                          |
/// |---------|-----:|-------:|----------------------------------|
/// | 1, 1, 1 |    1 |      1 | all were equal                   |
/// | 0, 1, 2 |    0 |     -1 | the only smallest catches up     |
/// | 0, 0, 2 |    0 |      0 | another smallest stays behind    |
/// | 0, 1, 2 |    2 |      1 | the largest grows                |
/// | 0, 1, 2 |    1 |      0 | neither end moves                |
fn skew_change(count: i64, extremes: Extremes) -> i32 {
    let Extremes { smallest, second_smallest, largest } = extremes;
    if smallest == largest {
        1
    } else if count == smallest && smallest != second_smallest {
        -1
    } else {
        i32::from(count == largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_preference_is_a_share_of_its_weight() {
        let units = Quantity::from_units;
        let cases = [
            (50, 0, 10, 3, false, 15),
            (50, 0, 10, 3, true, 35),
            (25, 0, 10, 1, false, 3),
            (-25, 0, 10, 1, false, -3),
            (50, 4, 4, 4, true, 0),
        ];
        for (weight, min, max, value, ascending, score) in cases {
            let range = (units(min), units(max));
            assert_eq!(sorted(weight, range, units(value), ascending), score, "{weight} {value}");
        }
    }

    #[test]
    fn the_skew_changes_at_its_ends() {
        let cases = [
            (vec![1, 1, 1], 1, 1),
            (vec![0, 1, 2], 0, -1),
            (vec![0, 0, 2], 0, 0),
            (vec![0, 1, 2], 2, 1),
            (vec![0, 1, 2], 1, 0),
            (vec![3], 3, 1),
        ];
        for (counts, into, change) in cases {
            assert_eq!(skew_change(into, extremes(&counts)), change, "{counts:?} {into}");
        }
    }
}
