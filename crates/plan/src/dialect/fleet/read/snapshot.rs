//! Resource snapshots of one index: a master and, where the selection is large, further parts.

use convoy_api::Object;
use convoy_api::object::meta::timestamp;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::dialect::fleet::names::{self, Family, NUMBER_OF_SNAPSHOTS, RESOURCE_INDEX};
use crate::dialect::fleet::read::placement::{Placement, field, list, text};
use crate::hash::content as hash;
use crate::snapshot::Snapshot;

/// What was selected at one moment, in one or several objects.
#[derive(Clone, Debug)]
pub(crate) struct ResourceGroup<'w> {
    pub(crate) master: &'w Object,
    /// By name, the master among them.
    pub(crate) parts: Vec<&'w Object>,
    /// How many parts there should be.
    pub(crate) expected: usize,
}

impl<'w> ResourceGroup<'w> {
    /// The newest one of a placement.
    pub(crate) fn latest(snapshot: &Snapshot<'w>, placement: &Placement<'_>) -> Option<Self> {
        let owned = owned(snapshot, placement);
        let masters = owned.filter(|part| names::is_latest(part) && names::is_master(part));
        // Of two that claim to be the newest, as in the middle of a change, the later one is.
        let master = masters.max_by_key(|part| names::index(part, RESOURCE_INDEX))?;
        Some(Self::led_by(snapshot, placement, master))
    }

    /// The one that goes by `index`.
    pub(crate) fn at(
        snapshot: &Snapshot<'w>,
        placement: &Placement<'_>,
        index: u32,
    ) -> Option<Self> {
        let mut owned = owned(snapshot, placement);
        let master = owned.find(|part| {
            names::is_master(part) && names::index(part, RESOURCE_INDEX) == Some(index)
        })?;
        Some(Self::led_by(snapshot, placement, master))
    }

    /// The one whose master goes by `name`, for a binding.
    pub(crate) fn named(snapshot: &Snapshot<'w>, binding: &Object, name: &str) -> Option<Self> {
        let kind = Family::of(binding).resource_snapshot();
        let master = snapshot.find(&kind, binding.namespace(), name)?;
        let parent = master.label(names::PARENT);
        let all = snapshot.of(&kind).iter().copied();
        let owned = all.filter(|part| {
            part.label(names::PARENT) == parent && part.namespace() == master.namespace()
        });
        Some(Self::of_index(master, owned))
    }

    /// Whether every part exists. While it does not, nobody can tell what was selected.
    pub(crate) fn is_complete(&self) -> bool {
        self.parts.len() >= self.expected
    }

    fn led_by(snapshot: &Snapshot<'w>, placement: &Placement<'_>, master: &'w Object) -> Self {
        Self::of_index(master, owned(snapshot, placement))
    }

    /// The parts among `owned` that have the master's index.
    fn of_index(master: &'w Object, owned: impl Iterator<Item = &'w Object>) -> Self {
        let index = master.label(RESOURCE_INDEX);
        let parts = owned.filter(|part| part.label(RESOURCE_INDEX) == index).collect();
        let expected = master.annotation(NUMBER_OF_SNAPSHOTS).and_then(|text| text.parse().ok());
        Self { master, parts, expected: expected.unwrap_or(1) }
    }
}

fn owned<'s, 'w: 's>(
    snapshot: &'s Snapshot<'w>,
    placement: &'s Placement<'_>,
) -> impl Iterator<Item = &'w Object> + 's {
    let all = snapshot.of(&placement.family.resource_snapshot()).iter().copied();
    all.filter(|part| placement.owns(part))
}

/// Which of the further parts of a group this is; none for the master.
pub(crate) fn sub_index(part: &Object) -> Option<u32> {
    part.annotation(names::SUB_INDEX)?.parse().ok()
}

/// The objects that one part holds.
pub(crate) fn resources(part: &Object) -> &[Value] {
    list(part.spec(), "selectedResources")
}

/// Everything a group holds, the master's part first.
pub(crate) fn contents(master: &Object, parts: &[&Object]) -> Vec<Value> {
    let sub_index = |part: &Object| sub_index(part).unwrap_or(u32::MAX);
    let mut rest: Vec<&Object> =
        parts.iter().copied().filter(|part| part.key() != master.key()).collect();
    rest.sort_by_key(|part| sub_index(part));
    let parts = std::iter::once(master).chain(rest);
    parts.flat_map(resources).cloned().collect()
}

pub(crate) fn hash_of(resources: &[Value]) -> String {
    let sorted: Vec<Value> = resources.iter().map(hash::sorted).collect();
    hash::hex(&json!({"selectedResources": sorted}))
}

/// When the first difference between a group and what is selected was seen.
pub(crate) fn candidate_seen(master: &Object) -> Option<Timestamp> {
    let annotation = master.annotation(names::CANDIDATE_SEEN).map(|text| json!(text));
    timestamp(annotation.as_ref())
}

/// How a policy snapshot picks clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotPick {
    All,
    /// The number is kept beside the policy, in an annotation.
    Number,
    /// So many names.
    Fixed(usize),
}

pub(crate) fn snapshot_pick(policy: &Object) -> SnapshotPick {
    let policy = field(policy.spec(), "policy");
    match text(policy, "placementType") {
        "PickN" => SnapshotPick::Number,
        "PickFixed" => SnapshotPick::Fixed(list(policy, "clusterNames").len()),
        _ => SnapshotPick::All,
    }
}
