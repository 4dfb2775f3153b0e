//! The decisions a placement has now: which clusters, in which groups, in which objects.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::member::text;
use convoy_api::ocm::names::{PLACEMENT_DECISION, PLACEMENT_LABEL, STRATEGY_HASH};
use convoy_api::ocm::spelling::decision_group;
use serde_json::Value;

use crate::dialect::ocm::list;
use crate::snapshot::Snapshot;

/// The present decisions of one placement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout<'w> {
    /// By name.
    pub(crate) decisions: Vec<&'w Object>,
    /// By index; each cluster is in one group only.
    pub(crate) groups: Vec<PresentGroup<'w>>,
    clusters: BTreeSet<&'w str>,
}

/// One decision group as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PresentGroup<'w> {
    pub(crate) index: i64,
    pub(crate) name: &'w str,
    /// By name.
    pub(crate) clusters: Vec<&'w str>,
}

impl<'w> Layout<'w> {
    /// What the decisions in `snapshot` say about `placement`.
    pub(crate) fn read(snapshot: &Snapshot<'w>, placement: &Object) -> Self {
        let own = |decision: &&&'w Object| {
            decision.namespace() == placement.namespace()
                && decision.label(PLACEMENT_LABEL) == Some(placement.name())
        };
        Self::of(snapshot.of(&PLACEMENT_DECISION).iter().filter(own).copied().collect())
    }

    fn of(decisions: Vec<&'w Object>) -> Self {
        let mut entries: Vec<(i64, &'w str, &'w str)> = Vec::new();
        for decision in &decisions {
            let (index, name) = decision_group(decision);
            let index = index.and_then(|index| index.parse().ok()).unwrap_or(0);
            entries.extend(clusters_of(decision).map(|cluster| (index, name, cluster)));
        }
        // While decisions are being rewritten a cluster may stand in two of them. The later
        // group counts: it waits longer, so nothing starts too early.
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(*entry));
        let mut clusters = BTreeSet::new();
        let mut groups: Vec<PresentGroup<'w>> = Vec::new();
        for (index, name, cluster) in entries {
            if !clusters.insert(cluster) {
                continue;
            }
            match groups.last_mut() {
                Some(group) if group.index == index && group.name == name => {
                    group.clusters.push(cluster);
                }
                _ => groups.push(PresentGroup { index, name, clusters: vec![cluster] }),
            }
        }
        groups.reverse();
        for group in &mut groups {
            group.clusters.reverse();
        }
        Self { decisions, groups, clusters }
    }

    /// Whether a cluster is decided.
    pub(crate) fn holds(&self, cluster: &str) -> bool {
        self.clusters.contains(cluster)
    }

    pub(crate) fn len(&self) -> usize {
        self.clusters.len()
    }

    pub(crate) fn clusters(&self) -> impl Iterator<Item = &'w str> {
        self.clusters.iter().copied()
    }

    /// Whether all decisions that say how they were cut were cut with this strategy; none if
    /// no decision says.
    pub(crate) fn was_cut_with(&self, hash: &str) -> Option<bool> {
        let mut recorded =
            self.decisions.iter().filter_map(|decision| decision.annotation(STRATEGY_HASH));
        let first = recorded.next()?;
        Some(first == hash && recorded.all(|other| other == hash))
    }

    /// Whether the placement's status tells of the same groups as the decisions do. It is
    /// written after them, so while they are being rewritten it does not.
    pub(crate) fn is_settled(&self, placement: &Object) -> bool {
        let Some(groups) = placement.status().get("decisionGroups").and_then(Value::as_array)
        else {
            return true; // nobody wrote a status: there is nothing to compare with
        };
        let mut listed = 0;
        let agrees = groups.iter().all(|group| {
            let names = group.get("decisions").or_else(|| group.get("placementDecisions"));
            let names = list(names);
            listed += names.len();
            let count = group.get("clusterCount").and_then(Value::as_u64).unwrap_or(0);
            self.count_of(group, names).is_some_and(|found| found == count)
        });
        agrees && listed == self.decisions.len()
    }

    /// How many clusters the decisions that a status group names list; none if one of them is
    /// missing or belongs to another group.
    fn count_of(&self, group: &Value, names: &[Value]) -> Option<u64> {
        let index = group.get("decisionGroupIndex").and_then(Value::as_i64).unwrap_or(0);
        let mut count = 0;
        for name in names {
            let decision = self.decisions.iter().find(|found| name == found.name().as_str())?;
            let (at, called) = decision_group(decision);
            if at.and_then(|at| at.parse().ok()) != Some(index)
                || called != text(group, "decisionGroupName")
            {
                return None;
            }
            count += clusters_of(decision).count() as u64;
        }
        Some(count)
    }
}

/// The clusters one decision lists, in its order.
pub(crate) fn clusters_of(decision: &Object) -> impl Iterator<Item = &str> {
    let decisions = list(decision.status().get("decisions")).iter();
    decisions.filter_map(|entry| entry.get("clusterName").and_then(Value::as_str))
}
