//! What becomes of objects that a work asks for no longer.

use convoy_api::Object;

use crate::dialect::ocm_agent::read::owner::Owners;
use crate::dialect::ocm_agent::read::recorded::AppliedResource;

/// An object that a work has brought, and does not ask for any more.
#[derive(Clone, Debug)]
pub(crate) struct Removal<'w> {
    pub(crate) resource: AppliedResource,
    pub(crate) fate: Fate<'w>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate<'w> {
    /// It is gone, belongs to others only, or is another object of that name.
    Forgotten,
    /// Another work has it too: only our owner reference goes.
    Released(&'w Object),
    Deleted(&'w Object),
    /// Its finalizers keep it.
    Awaited,
}

impl<'w> Removal<'w> {
    pub(crate) fn of(
        resource: AppliedResource,
        live: Option<&'w Object>,
        applied_work: &Object,
    ) -> Self {
        let fate = match live.map(|live| (live, Owners::of(live, applied_work))) {
            None => Fate::Forgotten,
            Some((_, owners)) if !owners.is_ours => Fate::Forgotten,
            Some((live, owners)) if owners.is_shared => Fate::Released(live),
            Some((live, _)) if live.uid() != Some(&resource.uid) => Fate::Forgotten,
            Some((live, _)) if live.is_deleting() => Fate::Awaited,
            Some((live, _)) => Fate::Deleted(live),
        };
        Self { resource, fate }
    }

    /// Whether the object is still there, and listed until it is gone.
    pub(crate) fn is_listed(&self) -> bool {
        matches!(self.fate, Fate::Deleted(_) | Fate::Awaited)
    }
}
