//! Prioritizers: what a cluster scores, and how much each score counts.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::ocm::names::{ADD_ON_PLACEMENT_SCORE, PLACEMENT_DECISION, PLACEMENT_LABEL};
use jiff::Timestamp;

use crate::dialect::ocm::read::cluster::allocatable;
use crate::dialect::ocm::read::decisions::{Decisions, clusters_of};
use crate::dialect::ocm::read::placement::{Prioritizer, Weighted};
use crate::dialect::ocm::read::score;
use crate::snapshot::Snapshot;

/// The best a cluster can score.
const BEST: i64 = 100;

/// The scores of all clusters, and what was noticed on the way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scores {
    /// In the order of the clusters given.
    pub(crate) totals: Vec<i64>,
    /// `namespace/name` of the add-on scores that no longer hold.
    pub(crate) expired: Vec<String>,
    /// When the next add-on score expires.
    pub(crate) expires_at: Option<Timestamp>,
}

/// The weighted sums of all scores, cluster by cluster.
pub(crate) fn scores(
    snapshot: &Snapshot<'_>,
    placement: &Object,
    prioritizers: &[Weighted],
    clusters: &[&Object],
    current: &Decisions<'_>,
    now: Timestamp,
) -> Scores {
    let mut scores = Scores { totals: vec![0; clusters.len()], ..Scores::default() };
    for Weighted { prioritizer, weight } in prioritizers {
        let single: Vec<i64> = match prioritizer {
            Prioritizer::Steady => {
                let steady = |cluster: &&Object| i64::from(current.holds(cluster.name())) * BEST;
                clusters.iter().map(steady).collect()
            }
            Prioritizer::Balance => balance(snapshot, placement, clusters),
            Prioritizer::Allocatable(resource) => free_resources(clusters, resource),
            Prioritizer::AddOn { resource, score } => {
                let read = |cluster: &&Object| {
                    add_on(snapshot, cluster, resource, score, now, &mut scores.expired)
                };
                let read: Vec<(i64, Option<Timestamp>)> = clusters.iter().map(read).collect();
                let expiry = read.iter().filter_map(|(_, expiry)| *expiry).min();
                scores.expires_at = scores.expires_at.into_iter().chain(expiry).min();
                read.into_iter().map(|(score, _)| score).collect()
            }
        };
        for (total, score) in scores.totals.iter_mut().zip(single) {
            *total = total.saturating_add(score.saturating_mul(*weight));
        }
    }
    scores
}

/// How little the other placements of all namespaces use each cluster.
fn balance(snapshot: &Snapshot<'_>, placement: &Object, clusters: &[&Object]) -> Vec<i64> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for decision in snapshot.of(&PLACEMENT_DECISION) {
        let own = decision.namespace() == placement.namespace()
            && decision.label(PLACEMENT_LABEL) == Some(placement.name());
        if !own {
            for cluster in clusters_of(decision) {
                *counts.entry(cluster).or_default() += 1;
            }
        }
    }
    let most = counts.values().copied().max().unwrap_or(0);
    let score = |cluster: &&Object| match counts.get(cluster.name().as_str()) {
        Some(count) => balance_score(*count, most),
        None => BEST,
    };
    clusters.iter().map(score).collect()
}

/// | count | most | score | because                                    |
/// |------:|-----:|------:|--------------------------------------------|
/// |     3 |    3 |  -100 | the most used cluster                      |
/// |     2 |    3 |   -32 | 100 x (0.5 - 0.67) is -16.7, truncated, doubled |
/// |     1 |    3 |    32 | 16.7 truncated, doubled                    |
#[expect(clippy::cast_possible_truncation, reason = "between -50 and 50 by construction")]
fn balance_score(count: u32, most: u32) -> i64 {
    // In floating point and in this order, so that upstream's roundings come out.
    2 * (100.0 * (0.5 - f64::from(count) / f64::from(most))) as i64
}

/// How each cluster ranks between the one with the least and the one with the most.
fn free_resources(clusters: &[&Object], resource: &str) -> Vec<i64> {
    let reported: Vec<Option<f64>> =
        clusters.iter().map(|cluster| allocatable(cluster, resource)).collect();
    let amounts = || reported.iter().filter_map(|amount| *amount);
    let least = amounts().fold(f64::INFINITY, f64::min);
    let most = amounts().fold(f64::NEG_INFINITY, f64::max);
    reported.iter().map(|amount| amount.map_or(0, |amount| share(amount, least, most))).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "between -100 and 100 by construction")]
fn share(amount: f64, least: f64, most: f64) -> i64 {
    if most > least { (((amount - least) / (most - least) - 0.5) * 200.0) as i64 } else { BEST }
}

/// The published score, and when it expires; 0 where it is missing or has expired.
fn add_on(
    snapshot: &Snapshot<'_>,
    cluster: &Object,
    resource: &str,
    name: &str,
    now: Timestamp,
    expired: &mut Vec<String>,
) -> (i64, Option<Timestamp>) {
    let Some(published) = snapshot.find(&ADD_ON_PLACEMENT_SCORE, cluster.name(), resource) else {
        return (0, None);
    };
    let valid_until = score::valid_until(published);
    if valid_until.is_some_and(|until| now > until) {
        let name = format!("{}/{}", published.namespace(), published.name());
        if expired.last() != Some(&name) {
            expired.push(name);
        }
        return (0, None);
    }
    (score::value(published, name), valid_until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balance_truncates_toward_zero() {
        let cases = [(3, 3, -100), (2, 3, -32), (1, 3, 32), (1, 1, -100), (1, 2, 0), (9, 20, 8)];
        for (count, most, score) in cases {
            assert_eq!(balance_score(count, most), score, "{count} of {most}");
        }
    }

    #[test]
    fn resources_score_by_their_place_between_least_and_most() {
        assert_eq!(share(4.0, 4.0, 12.0), -100);
        assert_eq!(share(12.0, 4.0, 12.0), 100);
        assert_eq!(share(7.0, 4.0, 12.0), -25);
        assert_eq!(share(5.0, 5.0, 5.0), 100);
    }
}
