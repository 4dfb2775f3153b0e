//! The policy snapshots of a placement: which one is in force, and which ones are outdated.
//! `numberOfClusters` is kept beside the policy, so changing it alone never makes a new one.

use convoy_api::Object;
use smol_str::{SmolStr, format_smolstr};

use crate::dialect::fleet::names;
use crate::dialect::fleet::read::placement::{Pick, Placement};
use crate::dialect::fleet::read::policy_snapshot::{content, content_of};
use crate::snapshot::Snapshot;

/// The policy snapshots of one placement.
#[derive(Clone, Debug)]
pub(crate) struct PolicyHistory<'w> {
    /// The snapshot in force, whether it exists already or is created now.
    pub(crate) active_name: SmolStr,
    pub(crate) active_index: u32,
    /// The snapshot in force, if it exists.
    pub(crate) active: Option<&'w Object>,
    /// Others that claim to be the newest.
    pub(crate) superseded: Vec<&'w Object>,
    /// The oldest, which go so that the limit holds once a new one is there.
    pub(crate) pruned: Vec<&'w Object>,
    /// Annotations that the snapshot in force has or should have, if they change.
    pub(crate) stale_annotations: Vec<(&'static str, String)>,
}

impl<'w> PolicyHistory<'w> {
    pub(crate) fn of(snapshot: &Snapshot<'w>, placement: &Placement<'w>) -> Self {
        let kind = placement.family.policy_snapshot();
        let index = |object: &&Object| names::index(object, names::POLICY_INDEX).unwrap_or(0);
        let owned = |object: &&'w Object| placement.owns(object) && !object.is_deleting();
        // By index, the oldest first.
        let mut all: Vec<&Object> = snapshot.of(&kind).iter().copied().filter(owned).collect();
        all.sort_by_key(index);
        let newest = all.iter().rfind(|object| names::is_latest(object)).or(all.last()).copied();
        let wanted = content(placement.policy.raw);
        let active = newest.filter(|found| content_of(found) == wanted);
        let active_index = match (active, all.last()) {
            (Some(active), _) => index(&active),
            (None, Some(last)) => index(last).saturating_add(1),
            (None, None) => 0,
        };
        let fresh = || format_smolstr!("{}-{active_index}", placement.name());
        let is_active = |object: &Object| active.is_some_and(|it| it.key() == object.key());
        let superseded = all.iter().copied();
        let superseded = superseded.filter(|old| names::is_latest(old) && !is_active(old));
        let keep = placement.revision_history_limit.saturating_sub(1);
        let surplus = if active.is_some() { 0 } else { all.len().saturating_sub(keep) };
        let mut stale_annotations = annotations(placement);
        if let Some(active) = active {
            stale_annotations.retain(|(key, value)| active.annotation(key) != Some(value));
        }
        Self {
            active_name: active.map_or_else(fresh, |active| active.name().clone()),
            active_index,
            active,
            superseded: superseded.collect(),
            pruned: all.iter().copied().take(surplus).collect(),
            stale_annotations,
        }
    }

    /// The snapshot in force as it stands, unless something about it is written now.
    pub(crate) fn unchanged(&self) -> Option<&'w Object> {
        self.active.filter(|active| names::is_latest(active) && self.stale_annotations.is_empty())
    }
}

/// What a snapshot says about its placement.
fn annotations(placement: &Placement<'_>) -> Vec<(&'static str, String)> {
    let mut annotations = vec![(names::GENERATION, placement.object.generation().to_string())];
    if let Pick::Number(wanted) = placement.policy.pick {
        annotations.push((names::NUMBER_OF_CLUSTERS, wanted.to_string()));
    }
    annotations
}
