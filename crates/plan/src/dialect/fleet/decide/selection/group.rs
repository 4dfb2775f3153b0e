//! Groups of resource snapshots: what was selected at one moment, split where it is large.

use convoy_api::Object;
use jiff::Timestamp;
use serde_json::Value;

use crate::dialect::fleet::decide::selection::select::{SelectionError, selected};
use crate::dialect::fleet::names;
use crate::dialect::fleet::read::options::Options;
use crate::dialect::fleet::read::placement::Placement;
use crate::dialect::fleet::read::snapshot::{ResourceGroup, candidate_seen, contents, hash_of};
use crate::snapshot::Snapshot;

/// What one snapshot object may hold; the API server takes about 1.5 MiB in all.
const PART_BYTES: usize = 800 * 1024;

/// How the newest group compares with what is selected now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision<'w> {
    /// The group of this index has it all, which may be nothing.
    Kept { index: u32, is_empty: bool },
    /// The same, but its master says otherwise and is corrected.
    Relabelled { index: u32, master: &'w Object },
    /// The same, once the parts that an interrupted creation left out are there.
    Completed { index: u32, resources: Vec<Value>, missing: Vec<usize> },
    /// It differs, and more changes may follow before it is written down. The first difference
    /// is marked on the master, unless it is.
    Collecting { until: Timestamp, mark: Option<&'w Object> },
    /// A new group is written, and the oldest ones go.
    Created { index: u32, resources: Vec<Value>, old: Old<'w> },
}

impl Decision<'_> {
    /// Whether the selectors match no object.
    pub(crate) fn selects_nothing(&self) -> bool {
        match self {
            Self::Kept { is_empty, .. } => *is_empty,
            Self::Completed { resources, .. } | Self::Created { resources, .. } => {
                resources.is_empty()
            }
            Self::Relabelled { .. } | Self::Collecting { .. } => false,
        }
    }
}

/// What a new group makes old.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Old<'w> {
    /// Masters that claim to be the newest.
    pub(crate) superseded: Vec<&'w Object>,
    /// What goes, so that the history limit holds once the new group is there.
    pub(crate) pruned: Vec<&'w Object>,
}

/// What becomes of the resource snapshots.
pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    placement: &Placement<'_>,
    now: Timestamp,
    options: &Options,
) -> Result<Decision<'w>, SelectionError> {
    let resources = selected(snapshot, placement, options)?;
    let masters = masters(snapshot, placement);
    let marked = masters.iter().rfind(|master| names::is_latest(master));
    let Some(newest) = marked.or(masters.last()).copied() else {
        let old = Old::beside(snapshot, placement, &masters);
        return Ok(Decision::Created { index: 0, resources, old });
    };
    let index = names::index(newest, names::RESOURCE_INDEX).unwrap_or(0);
    let group = ResourceGroup::at(snapshot, placement, index);
    let parts = group.as_ref().map_or(&[][..], |group| group.parts.as_slice());
    if contents(newest, parts) == resources {
        let is_marked = newest.annotation(names::CANDIDATE_SEEN).is_some();
        return Ok(if is_marked || !names::is_latest(newest) {
            Decision::Relabelled { index, master: newest }
        } else {
            Decision::Kept { index, is_empty: resources.is_empty() }
        });
    }
    if group.is_some_and(|group| !group.is_complete())
        && newest.annotation(names::RESOURCE_HASH) == Some(hash_of(&resources).as_str())
    {
        let missing = missing_parts(snapshot, placement, index, &resources);
        return Ok(Decision::Completed { index, resources, missing });
    }
    if let Some(waiting) = collecting(newest, now, options) {
        return Ok(waiting);
    }
    let last =
        masters.iter().filter_map(|master| names::index(master, names::RESOURCE_INDEX)).max();
    let index = last.map_or(0, |last| last.saturating_add(1));
    let old = Old::beside(snapshot, placement, &masters);
    Ok(Decision::Created { index, resources, old })
}

/// The masters of a placement, by index.
fn masters<'w>(snapshot: &Snapshot<'w>, placement: &Placement<'_>) -> Vec<&'w Object> {
    let all = snapshot.of(&placement.family.resource_snapshot()).iter().copied();
    let owned = all.filter(|object| placement.owns(object) && names::is_master(object));
    let mut masters: Vec<&Object> = owned.filter(|object| !object.is_deleting()).collect();
    masters.sort_by_key(|master| names::index(master, names::RESOURCE_INDEX));
    masters
}

/// Whether to wait for further changes.
fn collecting<'w>(newest: &'w Object, now: Timestamp, options: &Options) -> Option<Decision<'w>> {
    let seen = candidate_seen(newest).filter(|seen| *seen <= now);
    let collected = seen.unwrap_or(now).saturating_add(options.changes_collection).ok()?;
    let spaced =
        newest.created_at().and_then(|at| at.saturating_add(options.snapshot_interval).ok());
    let until = spaced.map_or(collected, |spaced| spaced.max(collected));
    if until <= now {
        return None;
    }
    Some(Decision::Collecting { until, mark: seen.is_none().then_some(newest) })
}

impl<'w> Old<'w> {
    fn beside(snapshot: &Snapshot<'w>, placement: &Placement<'_>, masters: &[&'w Object]) -> Self {
        let superseded = masters.iter().copied().filter(|master| names::is_latest(master));
        let keep = placement.revision_history_limit.saturating_sub(1);
        let surplus = masters.len().saturating_sub(keep);
        let all = snapshot.of(&placement.family.resource_snapshot());
        let mut pruned = Vec::new();
        for old in &masters[..surplus] {
            let index = old.label(names::RESOURCE_INDEX);
            let group = all.iter().copied().filter(|part| {
                placement.owns(part)
                    && part.label(names::RESOURCE_INDEX) == index
                    && !part.is_deleting()
            });
            pruned.extend(group);
        }
        Self { superseded: superseded.collect(), pruned }
    }
}

/// The parts of an interrupted group that are not there yet, by number.
fn missing_parts(
    snapshot: &Snapshot<'_>,
    placement: &Placement<'_>,
    index: u32,
    resources: &[Value],
) -> Vec<usize> {
    let kind = placement.family.resource_snapshot();
    let is_missing = |number: &usize| {
        let name = names::resource_snapshot_name(placement.name(), index, *number);
        snapshot.find(&kind, placement.namespace(), &name).is_none()
    };
    (1..split(resources).len()).filter(is_missing).collect()
}

/// Cuts a selection where a part would grow too large. There is always one part.
pub(crate) fn split(resources: &[Value]) -> Vec<&[Value]> {
    let mut parts = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (at, resource) in resources.iter().enumerate() {
        let size = resource.to_string().len();
        if bytes + size > PART_BYTES && at > from {
            parts.push(&resources[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += size;
    }
    parts.push(&resources[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_collected_as_long_as_the_options_say() {
        let at = |secs: i64| Timestamp::from_second(1_767_225_600 + secs).unwrap();
        let (secs, upstream) = (SignedDuration::from_secs, Options::new());
        let short =
            Options { snapshot_interval: secs(0), changes_collection: secs(2), ..Options::new() };
        let old = |seen: Option<i64>| {
            let mut master =
                object("placement.kubernetes-fleet.io/v1", "ClusterResourceSnapshot", "a")
                    .created_at("2026-01-01T00:00:00Z");
            if let Some(seen) = seen {
                master = master.annotation(names::CANDIDATE_SEEN, &at(seen).to_string());
            }
            master.build()
        };
        // options, first difference seen, now, wait until
        let cases = [
            ("seen just now", upstream, None, 100, Some(115)),
            ("collecting", upstream, Some(95), 100, Some(110)),
            ("collected", upstream, Some(85), 100, None),
            ("too soon after the last one", upstream, Some(5), 21, Some(30)),
            ("shorter, by the flags", short, None, 1, Some(3)),
            ("shorter, collected", short, Some(1), 3, None),
            ("at once", Options::AT_ONCE, None, 0, None),
        ];
        for (name, options, seen, now, want) in cases {
            let master = old(seen);
            let found = collecting(&master, at(now), &options).map(|waiting| match waiting {
                Decision::Collecting { until, .. } => until,
                other => panic!("{name}: {other:?}"),
            });
            assert_eq!(found, want.map(at), "{name}");
        }
    }

    #[test]
    fn a_large_selection_is_cut_into_parts() {
        let large = json!({"data": "x".repeat(500 * 1024)});
        assert_eq!(split(&[]).len(), 1);
        assert_eq!(split(&[large.clone(), json!({})]).len(), 1);
        let parts = [large.clone(), json!({}), large.clone(), large];
        assert_eq!(split(&parts).iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 1, 1]);
    }
}
