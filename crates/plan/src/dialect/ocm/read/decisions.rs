//! The decisions that a placement has now: which clusters, in which groups, in which objects.

use std::collections::BTreeSet;

use convoy_api::Object;
use convoy_api::object::member::{field, list};
use convoy_api::object::view::view_of;
use convoy_api::ocm::DecisionGroupStatus;
use convoy_api::ocm::names::{PLACEMENT_DECISION, PLACEMENT_LABEL, STRATEGY_HASH};
use convoy_api::ocm::spelling::decision_group;
use smol_str::SmolStr;

use crate::snapshot::Snapshot;

/// The present decisions of one placement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions<'w> {
    /// By name.
    pub(crate) objects: Vec<&'w Object>,
    /// By index; each cluster is in one group only.
    pub(crate) groups: Vec<DecidedGroup<'w>>,
    /// The same, where a cluster may be in groups of several names.
    pub(crate) groups_by_name: Vec<DecidedGroup<'w>>,
    clusters: BTreeSet<&'w str>,
}

/// One decision group as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecidedGroup<'w> {
    pub(crate) index: i64,
    pub(crate) name: &'w str,
    /// By name.
    pub(crate) clusters: Vec<&'w str>,
    /// Those of them that are on their way into the group.
    pub(crate) arriving: BTreeSet<&'w str>,
}

/// Number and name of a decision group.
pub(crate) type GroupLabel<'w> = (i64, &'w str);

/// The reason that is written beside a cluster while it moves to a group, instead of none. Should
/// nothing more be written, it still counts there, and not in the group of the decision.
const MOVES: &str = "MovesToDecisionGroup";

/// How a decision tells that a cluster moves to a group.
pub(crate) fn moving((index, name): GroupLabel<'_>) -> String {
    format!("{MOVES}/{index}/{name}")
}

impl<'w> Decisions<'w> {
    /// What the decisions in `snapshot` say about `placement`.
    pub(crate) fn read(snapshot: &Snapshot<'w>, placement: &Object) -> Self {
        let own = |decision: &&&'w Object| {
            decision.namespace() == placement.namespace()
                && decision.label(PLACEMENT_LABEL) == Some(placement.name())
        };
        Self::of(snapshot.of(&PLACEMENT_DECISION).iter().filter(own).copied().collect())
    }

    fn of(decisions: Vec<&'w Object>) -> Self {
        let mut entries: Vec<Entry<'w>> = Vec::new();
        for decision in &decisions {
            let label = label_of(decision);
            entries.extend(listed(decision).map(|(cluster, moves_to)| {
                let (index, name) = moves_to.unwrap_or(label);
                (index, name, cluster, moves_to.is_none())
            }));
        }
        // While decisions are being rewritten a cluster may stand in two of them. The later
        // group counts: it waits longer, so nothing starts too early.
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(*entry));
        let mut clusters = BTreeSet::new();
        let groups = grouped(&entries, |(_, _, cluster, _)| clusters.insert(cluster));
        // Which of the two a cluster is about to leave shows in the name, where they differ.
        let mut named = BTreeSet::new();
        let groups_by_name = if entries.len() == clusters.len() {
            groups.clone()
        } else {
            grouped(&entries, |(_, name, cluster, _)| named.insert((name, cluster)))
        };
        Self { objects: decisions, groups, groups_by_name, clusters }
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
            self.objects.iter().filter_map(|decision| decision.annotation(STRATEGY_HASH));
        let first = recorded.next()?;
        Some(first == hash && recorded.all(|other| other == hash))
    }

    /// The first decision without a numeric group index, if there is one.
    pub(crate) fn unnumbered(&self) -> Option<&SmolStr> {
        let numbered = |decision: &Object| {
            decision_group(decision).0.is_some_and(|index| index.parse::<u32>().is_ok())
        };
        let mut unnumbered = self.objects.iter().filter(|decision| !numbered(decision));
        unnumbered.next().map(|decision| decision.name())
    }

    /// Whether the placement's status tells of the same groups as the decisions do. It is
    /// written after them, so while they are being rewritten it does not.
    pub(crate) fn is_settled(&self, placement: &Object) -> bool {
        let Some(groups) = placement.status().get("decisionGroups").filter(|it| it.is_array())
        else {
            return true; // nobody wrote a status: there is nothing to compare with
        };
        let Ok(groups) = view_of::<Vec<DecisionGroupStatus>>(groups) else { return false };
        let mut listed = 0;
        let agrees = groups.iter().all(|group| {
            let names = group.decisions.as_ref().or(group.placement_decisions.as_ref());
            let names = names.map_or(&[][..], Vec::as_slice);
            listed += names.len();
            let count = usize::try_from(group.cluster_count.unwrap_or(0)).ok();
            let found = self.count_of(group, names);
            found.is_some() && found == count
        });
        agrees && listed == self.objects.len()
    }

    /// How many clusters the decisions that a status group names list; none if one of them is
    /// missing or belongs to another group.
    fn count_of(&self, group: &DecisionGroupStatus, names: &[String]) -> Option<usize> {
        let index = group.decision_group_index.unwrap_or(0);
        let mut count = 0;
        for name in names {
            let decision = self.objects.iter().find(|found| *name == found.name().as_str())?;
            let (at, called) = decision_group(decision);
            if at.and_then(|at| at.parse().ok()) != Some(index)
                || called != group.decision_group_name.as_deref().unwrap_or_default()
            {
                return None;
            }
            count += clusters_of(decision).count();
        }
        Some(count)
    }
}

/// Group number and name of a cluster, the cluster, and whether it has arrived there.
type Entry<'w> = (i64, &'w str, &'w str, bool);

/// Those of the entries, from the last, that `counts`, as groups by index.
fn grouped<'w>(
    entries: &[Entry<'w>],
    mut counts: impl FnMut(Entry<'w>) -> bool,
) -> Vec<DecidedGroup<'w>> {
    let mut groups: Vec<DecidedGroup<'w>> = Vec::new();
    for (index, name, cluster, has_arrived) in entries.iter().copied() {
        if !counts((index, name, cluster, has_arrived)) {
            continue;
        }
        if groups.last().is_none_or(|group| group.index != index || group.name != name) {
            let (clusters, arriving) = (Vec::new(), BTreeSet::new());
            groups.push(DecidedGroup { index, name, clusters, arriving });
        }
        if let Some(group) = groups.last_mut() {
            group.clusters.push(cluster);
            group.arriving.extend((!has_arrived).then_some(cluster));
        }
    }
    groups.reverse();
    for group in &mut groups {
        group.clusters.reverse();
    }
    groups
}

/// The group that the labels of a decision name.
pub(crate) fn label_of(decision: &Object) -> GroupLabel<'_> {
    let (index, name) = decision_group(decision);
    (index.and_then(|index| index.parse().ok()).unwrap_or(0), name)
}

/// The clusters one decision lists, in its order.
pub(crate) fn clusters_of(decision: &Object) -> impl Iterator<Item = &str> {
    listed(decision).map(|(cluster, _)| cluster)
}

/// The same, with the groups of those who are moving.
pub(crate) fn listed(decision: &Object) -> impl Iterator<Item = (&str, Option<GroupLabel<'_>>)> {
    let entries = list(decision.status(), "decisions").iter();
    entries.filter_map(|entry| {
        let cluster = field(entry, "clusterName").as_str()?;
        Some((cluster, field(entry, "reason").as_str().and_then(moves_to)))
    })
}

fn moves_to(reason: &str) -> Option<GroupLabel<'_>> {
    let (index, name) = reason.strip_prefix(MOVES)?.strip_prefix('/')?.split_once('/')?;
    Some((index.parse().ok()?, name))
}
