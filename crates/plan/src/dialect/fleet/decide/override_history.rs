//! Overrides are rolled out as snapshots too: every change of a spec makes a new one, and the
//! newest is in force.

use convoy_api::Object;

use crate::dialect::fleet::names;
use crate::dialect::fleet::read::overrides::is_snapshot_of;
use crate::snapshot::Snapshot;

/// The snapshots of a `ClusterResourceOverride` or `ResourceOverride`, by index.
#[derive(Clone, Debug)]
pub(crate) struct OverrideHistory<'w> {
    pub(crate) snapshots: Vec<&'w Object>,
    /// The index of the snapshot that is created now; None: the newest one holds the spec.
    pub(crate) next: Option<u32>,
}

pub(crate) fn decide<'w>(snapshot: &Snapshot<'w>) -> OverrideHistory<'w> {
    let rollout = snapshot.rollout();
    let index = |object: &&Object| names::index(object, names::OVERRIDE_INDEX).unwrap_or(0);
    let all = snapshot.of(&names::override_snapshot_kind(rollout.kind())).iter().copied();
    let parent = Some(rollout.name().as_str());
    let mut snapshots: Vec<&Object> =
        all.filter(|object| object.label(names::PARENT_OVERRIDE) == parent).collect();
    snapshots.sort_by_key(index);
    let next = match snapshots.last() {
        Some(newest) if is_snapshot_of(newest, rollout) => None,
        Some(newest) => Some(index(newest).saturating_add(1)),
        None => Some(0),
    };
    OverrideHistory { snapshots, next }
}
