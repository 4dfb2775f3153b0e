//! Resource snapshots of one index: a master and, where the selection is large, further parts.

use convoy_api::Object;

use crate::dialect::fleet::names::{self, NUMBER_OF_SNAPSHOTS, RESOURCE_INDEX};
use crate::dialect::fleet::read::placement::Placement;
use crate::snapshot::Snapshot;

/// What was selected at one moment, in one or several objects.
#[derive(Clone, Debug)]
pub struct ResourceGroup<'w> {
    pub master: &'w Object,
    /// By name, the master among them.
    pub parts: Vec<&'w Object>,
    /// How many parts there should be.
    pub expected: usize,
}

impl<'w> ResourceGroup<'w> {
    /// The newest one of a placement.
    pub fn latest(snapshot: &Snapshot<'w>, placement: &Placement<'_>) -> Option<Self> {
        let owned = owned(snapshot, placement);
        let masters = owned.filter(|part| names::is_latest(part) && names::is_master(part));
        // Of two that claim to be the newest, as in the middle of a change, the later one is.
        let master = masters.max_by_key(|part| names::index(part, RESOURCE_INDEX))?;
        Some(Self::led_by(snapshot, placement, master))
    }

    /// The one that goes by `index`.
    pub fn at(snapshot: &Snapshot<'w>, placement: &Placement<'_>, index: u32) -> Option<Self> {
        let mut owned = owned(snapshot, placement);
        let master = owned.find(|part| {
            names::is_master(part) && names::index(part, RESOURCE_INDEX) == Some(index)
        })?;
        Some(Self::led_by(snapshot, placement, master))
    }

    /// Whether every part exists. While it does not, nobody can tell what was selected.
    pub fn is_complete(&self) -> bool {
        self.parts.len() >= self.expected
    }

    fn led_by(snapshot: &Snapshot<'w>, placement: &Placement<'_>, master: &'w Object) -> Self {
        let index = master.label(RESOURCE_INDEX);
        let owned = owned(snapshot, placement);
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
