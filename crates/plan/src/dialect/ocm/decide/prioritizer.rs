//! Prioritizers: what a cluster scores, and how much each score counts.

use std::collections::BTreeMap;

use convoy_api::Object;
use convoy_api::object::member::text;
use convoy_api::object::meta::timestamp;
use convoy_api::ocm::names::{ADD_ON_PLACEMENT_SCORE, PLACEMENT_DECISION, PLACEMENT_LABEL};
use convoy_api::text::quantity::Quantity;
use jiff::Timestamp;
use serde_json::Value;
use smol_str::SmolStr;

use crate::dialect::ocm::list;
use crate::dialect::ocm::read::decisions::{Layout, clusters_of};
use crate::dialect::ocm::read::placement::Misconfiguration;
use crate::snapshot::Snapshot;

/// The best a cluster can score.
const BEST: i64 = 100;

/// One prioritizer and what its score is multiplied by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weighted {
    pub(crate) prioritizer: Prioritizer,
    pub(crate) weight: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prioritizer {
    /// Prefers clusters that are decided already.
    Steady,
    /// Prefers clusters that few other placements use.
    Balance,
    /// Prefers clusters with much of a resource left.
    Allocatable(&'static str),
    /// A score that an add-on publishes in the cluster's namespace.
    AddOn { resource: SmolStr, score: SmolStr },
}

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

/// Reads `spec.prioritizerPolicy`. A later entry for the same built-in replaces an earlier
/// one; add-on entries all count.
pub(crate) fn read(spec: &Value, wrong: &mut Vec<Misconfiguration>) -> Vec<Weighted> {
    let policy = spec.get("prioritizerPolicy").unwrap_or(&Value::Null);
    let mut object = |field: &str, message: String| {
        let field = format!("spec.prioritizerPolicy.{field}");
        wrong.push(Misconfiguration { plugin: "", field, message });
    };
    let mut read = match text(policy, "mode") {
        "" | "Additive" => [Prioritizer::Balance, Prioritizer::Steady]
            .map(|prioritizer| Weighted { prioritizer, weight: 1 })
            .to_vec(),
        "Exact" => Vec::new(),
        other => {
            object("mode", format!("incorrect prioritizer policy mode: {other}"));
            Vec::new()
        }
    };
    for (index, entry) in list(policy.get("configurations")).iter().enumerate() {
        match configuration(entry) {
            Ok(Some(weighted)) => overwrite(&mut read, weighted),
            Ok(None) => {}
            Err((field, message)) => object(&format!("configurations[{index}].{field}"), message),
        }
    }
    read.retain(|weighted| weighted.weight != 0);
    read
}

/// One configuration; none for an unknown built-in that is switched off.
fn configuration(entry: &Value) -> Result<Option<Weighted>, (&'static str, String)> {
    let weight = entry.get("weight").and_then(Value::as_i64).unwrap_or(1);
    let Some(coordinate) = entry.get("scoreCoordinate").filter(|value| value.is_object()) else {
        return Err(("scoreCoordinate", "scoreCoordinate field is required".to_owned()));
    };
    let prioritizer = if text(coordinate, "type") == "AddOn" {
        let Some(add_on) = coordinate.get("addOn").filter(|value| value.is_object()) else {
            return Err(("scoreCoordinate.addOn", "addOn should not be empty".to_owned()));
        };
        let [resource, score] =
            ["resourceName", "scoreName"].map(|field| SmolStr::new(text(add_on, field)));
        Prioritizer::AddOn { resource, score }
    } else {
        match text(coordinate, "builtIn") {
            "Steady" => Prioritizer::Steady,
            "Balance" => Prioritizer::Balance,
            "ResourceAllocatableCPU" => Prioritizer::Allocatable("cpu"),
            "ResourceAllocatableMemory" => Prioritizer::Allocatable("memory"),
            _ if weight == 0 => return Ok(None),
            other => {
                let message = format!("incorrect builtin prioritizer: {other}");
                return Err(("scoreCoordinate.builtIn", message));
            }
        }
    };
    Ok(Some(Weighted { prioritizer, weight }))
}

fn overwrite(read: &mut Vec<Weighted>, weighted: Weighted) {
    let add_on = matches!(weighted.prioritizer, Prioritizer::AddOn { .. });
    let same = read.iter_mut().find(|other| !add_on && other.prioritizer == weighted.prioritizer);
    match same {
        Some(other) => *other = weighted,
        None => read.push(weighted),
    }
}

/// The weighted sums of all scores, cluster by cluster.
pub(crate) fn scores(
    snapshot: &Snapshot<'_>,
    placement: &Object,
    prioritizers: &[Weighted],
    clusters: &[&Object],
    present: &Layout<'_>,
    now: Timestamp,
) -> Scores {
    let mut scores = Scores { totals: vec![0; clusters.len()], ..Scores::default() };
    for Weighted { prioritizer, weight } in prioritizers {
        let single: Vec<i64> = match prioritizer {
            Prioritizer::Steady => {
                let steady = |cluster: &&Object| i64::from(present.holds(cluster.name())) * BEST;
                clusters.iter().map(steady).collect()
            }
            Prioritizer::Balance => balance(snapshot, placement, clusters),
            Prioritizer::Allocatable(resource) => allocatable(clusters, resource),
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

/// Where each cluster stands between the one with the least and the one with the most.
fn allocatable(clusters: &[&Object], resource: &str) -> Vec<i64> {
    let reported: Vec<Option<f64>> =
        clusters.iter().map(|cluster| reported(cluster, resource)).collect();
    let amounts = || reported.iter().filter_map(|amount| *amount);
    let least = amounts().fold(f64::INFINITY, f64::min);
    let most = amounts().fold(f64::NEG_INFINITY, f64::max);
    reported.iter().map(|amount| amount.map_or(0, |amount| share(amount, least, most))).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "between -100 and 100 by construction")]
fn share(amount: f64, least: f64, most: f64) -> i64 {
    if most > least { (((amount - least) / (most - least) - 0.5) * 200.0) as i64 } else { BEST }
}

/// What a cluster can still give, if it says both what it has and what is left.
#[expect(clippy::cast_precision_loss, reason = "scores are shares; upstream is no finer")]
fn reported(cluster: &Object, resource: &str) -> Option<f64> {
    let amount = |field: &str| -> Option<Quantity> {
        match cluster.status().get(field)?.get(resource)? {
            Value::String(text) => text.parse().ok(),
            Value::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    };
    amount("capacity")?;
    Some(amount("allocatable")?.as_nanos() as f64 / 1e9)
}

/// The published score, and when it expires; 0 where it is missing or has expired.
fn add_on(
    snapshot: &Snapshot<'_>,
    cluster: &Object,
    resource: &str,
    score: &str,
    now: Timestamp,
    expired: &mut Vec<String>,
) -> (i64, Option<Timestamp>) {
    let Some(published) = snapshot.find(&ADD_ON_PLACEMENT_SCORE, cluster.name(), resource) else {
        return (0, None);
    };
    let valid_until = timestamp(published.status().get("validUntil"));
    if valid_until.is_some_and(|until| now > until) {
        let name = format!("{}/{}", published.namespace(), published.name());
        if expired.last() != Some(&name) {
            expired.push(name);
        }
        return (0, None);
    }
    let entries = list(published.status().get("scores"));
    let entry = entries.iter().find(|entry| text(entry, "name") == score);
    let value = entry.and_then(|entry| entry.get("value")).and_then(Value::as_i64);
    (value.unwrap_or(0), valid_until)
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
