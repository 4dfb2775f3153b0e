//! The decision groups of a placement, as its decisions spell them out.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use serde_json::Value;

use super::strategy::share;

/// The groups by number; each cluster is in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) groups: Vec<DecisionGroup>,
    /// Whether there is a decision at all: one says so even if nobody is selected.
    pub(super) is_written: bool,
    /// A cluster that more than one decision lists.
    pub(super) doubled: Option<String>,
    /// Group of each cluster, as its place in `groups`.
    places: BTreeMap<String, usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecisionGroup {
    pub(super) index: i64,
    pub(super) name: String,
    pub(super) clusters: BTreeSet<String>,
}

/// One `PlacementDecision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    index: i64,
    name: String,
    clusters: Vec<String>,
}

impl Slice {
    pub(super) fn read(object: &Object) -> Self {
        let label = |name: &str| {
            object.label(&format!("cluster.open-cluster-management.io/decision-group-{name}"))
        };
        let entries = list(object.status(), "decisions").iter();
        Self {
            index: label("index").and_then(|index| index.parse().ok()).unwrap_or(0),
            name: label("name").unwrap_or_default().to_owned(),
            clusters: entries.map(|entry| text(entry, "clusterName").to_owned()).collect(),
        }
    }
}

impl Layout {
    /// While decisions are rewritten a cluster may be in two groups: then it is in the later.
    pub(super) fn of<'s>(slices: impl Iterator<Item = &'s Slice>) -> Self {
        let mut slices: Vec<&Slice> = slices.collect();
        let is_written = !slices.is_empty();
        slices.sort_by_key(|slice| slice.index);
        let mut doubled = None;
        let mut homes: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
        for slice in slices {
            for cluster in &slice.clusters {
                if homes.insert(cluster, (slice.index, &slice.name)).is_some() {
                    doubled = Some(cluster.clone());
                }
            }
        }
        let mut groups: BTreeMap<(i64, &str), BTreeSet<String>> = BTreeMap::new();
        for (cluster, home) in homes {
            groups.entry(home).or_default().insert(cluster.to_owned());
        }
        let groups: Vec<DecisionGroup> = groups
            .into_iter()
            .map(|((index, name), clusters)| DecisionGroup {
                index,
                name: name.to_owned(),
                clusters,
            })
            .collect();
        let places = groups.iter().enumerate().flat_map(|(place, group)| {
            group.clusters.iter().map(move |cluster| (cluster.clone(), place))
        });
        Self { places: places.collect(), groups, is_written, doubled }
    }

    pub(super) fn group_of(&self, cluster: &str) -> Option<&DecisionGroup> {
        self.places.get(cluster).map(|place| &self.groups[*place])
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Groups are numbered without gaps, none is empty or longer than it may be, and no cluster is
    /// in two.
    pub(super) fn is_sound(&self, per_group: &Value) -> Result<(), String> {
        if let Some(cluster) = &self.doubled {
            return Err(format!("cluster {cluster} is in two decisions"));
        }
        let most = length(per_group, self.len());
        for (number, group) in (0_i64..).zip(&self.groups) {
            let (index, size) = (group.index, group.clusters.len());
            if index != number || size > most {
                return Err(format!(
                    "decision group {index} is the one at {number}, with {size} clusters of {most}"
                ));
            }
        }
        Ok(())
    }

    /// Whether the clusters of `before` that are in `self` too have kept their groups. `stays`
    /// says which were there all along, and `most` how many one group could hold at least.
    pub(super) fn keeps(
        &self,
        before: &Self,
        most: usize,
        stays: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let mut last: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for group in &before.groups {
            let same = |cluster: &&String| {
                stays(cluster) && self.group_of(cluster).is_some_and(|it| it.name == group.name)
            };
            // Of a group that may hold fewer now, the last by name leave.
            let kept: Vec<&String> = group.clusters.iter().filter(same).take(most).collect();
            let Some(first) = kept.first() else { continue };
            let home = self.group_of(first).map_or(0, |it| it.index);
            let is_elsewhere =
                |cluster: &&&String| self.group_of(cluster).is_none_or(|it| it.index != home);
            if let Some(other) = kept.iter().find(is_elsewhere) {
                return Err(format!(
                    "clusters {first} and {other} were both in decision group {}, and are not any more",
                    group.index
                ));
            }
            let former = last.insert(&group.name, (group.index, home));
            if let Some((index, place)) = former.filter(|(_, place)| *place >= home) {
                return Err(format!(
                    "decision groups {index} and {} are now {place} and {home}",
                    group.index
                ));
            }
        }
        Ok(())
    }
}

/// The most clusters of a group, when so many are selected.
pub(super) fn length(per_group: &Value, selected: usize) -> usize {
    match share(per_group, selected).unwrap_or(selected) {
        0 => selected,
        length => length.min(selected),
    }
}

/// How a placement asks for its clusters to be grouped.
pub(super) fn group_strategy(placement: &Object) -> Value {
    field(field(placement.spec(), "decisionStrategy"), "groupStrategy").clone()
}
