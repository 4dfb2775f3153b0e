//! Which pods go first when a ReplicaSet has too many: those that serve least, those that
//! crowd a node, those that have lived shortest.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use convoy_api::Object;
use convoy_api::apps::{POD, REPLICA_SET};
use jiff::Timestamp;

use super::active::{ActivePod, Phase, Readiness};
use super::{is_finished, node_of};
use crate::ownership;
use crate::selector::Selector;
use crate::snapshot::Snapshot;

/// The first `count` pods of a set, in the order in which they are given up.
///
/// Of those that are ready, the ones that do not count as available yet go first: whoever
/// sizes the set counts on it. That is the one rule that kube-controller-manager does not have.
pub(crate) fn first<'o>(
    pods: &[ActivePod<'o>],
    count: usize,
    is_available: impl Fn(&ActivePod<'o>) -> bool,
    snapshot: &Snapshot<'o>,
    now: Timestamp,
) -> Vec<&'o Object> {
    let crowds = crowds(snapshot.rollout(), snapshot);
    let rank = |pod| Reverse(Ranked::new(pod, &crowds, now, is_available(pod)));
    // Two of the rules fall back on the uid, which makes the order intransitive at times. A
    // heap gives some answer then, always the same; sorting functions may refuse.
    let mut heap: BinaryHeap<_> = pods.iter().map(rank).collect();
    let mut chosen = Vec::new();
    while chosen.len() < count
        && let Some(Reverse(next)) = heap.pop()
    {
        chosen.push(next.object);
    }
    chosen
}

/// How many live pods of the same Deployment each node has.
fn crowds<'o>(set: &Object, snapshot: &Snapshot<'o>) -> BTreeMap<&'o str, u32> {
    let mut crowds = BTreeMap::new();
    let Some(controller) = set.controller() else { return crowds };
    let siblings = snapshot
        .of(&REPLICA_SET)
        .iter()
        .filter(|sibling| sibling.controller().is_some_and(|other| other.uid == controller.uid));
    let selectors: Vec<Selector> =
        siblings.filter_map(|sibling| ownership::selector(sibling)).collect();
    let mut seen = BTreeSet::new();
    for pod in snapshot.of(&POD) {
        let alive = !pod.is_deleting() && !is_finished(pod);
        let related = alive && selectors.iter().any(|selector| selector.matches(pod));
        if related && seen.insert(pod.key()) {
            *crowds.entry(node_of(pod).unwrap_or_default()).or_default() += 1;
        }
    }
    crowds
}

#[derive(Debug)]
struct Ranked<'o> {
    object: &'o Object,
    /// The rules before time: the smaller goes first.
    standing: (bool, Phase, bool, bool, i32, Reverse<u32>),
    ready_at: Option<Instant>,
    is_ready: bool,
    restarts: Reverse<(i64, i64)>,
    created_at: Option<Instant>,
    uid: &'o str,
}

/// An instant, and how long ago it was on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instant {
    at: Timestamp,
    magnitude: i32,
}

impl<'o> Ranked<'o> {
    fn new(
        pod: &ActivePod<'o>,
        crowds: &BTreeMap<&str, u32>,
        now: Timestamp,
        is_available: bool,
    ) -> Self {
        let crowd = crowds.get(pod.node).copied().unwrap_or(0);
        let ready_at = match pod.ready {
            Readiness::True { since } => since,
            Readiness::False => None,
        };
        Self {
            object: pod.object,
            standing: (
                !pod.node.is_empty(),
                pod.phase,
                pod.is_ready(),
                is_available,
                pod.deletion_cost,
                Reverse(crowd),
            ),
            ready_at: ready_at.map(|at| Instant::new(at, now)),
            is_ready: pod.is_ready(),
            restarts: Reverse(pod.restarts()),
            created_at: pod.object.created_at().map(|at| Instant::new(at, now)),
            uid: pod.object.uid().unwrap_or_default(),
        }
    }

    /// The later goes first, where the two are of different magnitude; an unset one before any.
    fn by_time(&self, other: &Self, ours: Option<Instant>, theirs: Option<Instant>) -> Ordering {
        match (ours, theirs) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(ours), Some(theirs)) if ours.at == theirs.at => Ordering::Equal,
            (Some(ours), Some(theirs)) => {
                ours.magnitude.cmp(&theirs.magnitude).then_with(|| self.uid.cmp(other.uid))
            }
        }
    }
}

impl Instant {
    /// | ago     | magnitude | because                        |
    /// |--------:|----------:|--------------------------------|
    /// | 1 ns    |         0 | 2^0                            |
    /// | 3 ns    |         1 | between 2^1 and 2^2            |
    /// | not yet |        −1 | shorter than anything that was |
    fn new(at: Timestamp, now: Timestamp) -> Self {
        let nanos = now.as_nanosecond() - at.as_nanosecond();
        let magnitude = if nanos > 0 { nanos.unsigned_abs().ilog2() } else { 0 };
        let magnitude = if nanos > 0 { i32::try_from(magnitude).unwrap_or(i32::MAX) } else { -1 };
        Self { at, magnitude }
    }
}

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_ready = || {
            if self.is_ready && other.is_ready {
                self.by_time(other, self.ready_at, other.ready_at)
            } else {
                Ordering::Equal
            }
        };
        self.standing
            .cmp(&other.standing)
            .then_with(by_ready)
            .then_with(|| self.restarts.cmp(&other.restarts))
            .then_with(|| self.by_time(other, self.created_at, other.created_at))
    }
}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_compared_on_a_logarithmic_scale() {
        let at = |nanos: i128| Timestamp::from_nanosecond(nanos).unwrap();
        let cases = [(1, 0), (2, 1), (3, 1), (4, 2), (0, -1), (-5, -1)];
        for (ago, magnitude) in cases {
            assert_eq!(Instant::new(at(100 - ago), at(100)).magnitude, magnitude, "{ago} ns");
        }
    }
}
