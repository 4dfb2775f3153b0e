//! What the budgets of a rolling update are measured against.

/// The clusters of a placement, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// How many clusters should carry the resources.
    pub(crate) target: u32,
    /// `maxUnavailable`, as a number.
    pub(crate) max_unavailable: u32,
    /// `maxSurge`, as a number.
    pub(crate) max_surge: u32,
    /// Bindings whose resources work.
    pub(crate) ready: u32,
    /// Of these, those that are being deleted and may stop working at any time.
    pub(crate) leaving: u32,
    /// Bindings whose resources work or may come to work.
    pub(crate) can_be_ready: u32,
    /// Bindings whose resources do not work, and are on their clusters all the same. One whose
    /// cluster left the fleet is not counted: nobody takes the resources off it.
    pub(crate) failed: u32,
}

impl Counts {
    /// How many may be unavailable for an update in place: at least one, because otherwise it
    /// could never begin.
    pub(crate) fn update_floor(&self) -> u32 {
        self.max_unavailable.max(1)
    }

    /// How many clusters are missing from the target, or may be at any time.
    pub(crate) fn missing(&self) -> u32 {
        self.target.saturating_add(self.leaving).saturating_sub(self.ready)
    }

    /// How many surely ready bindings there are beyond the target.
    pub(crate) fn surplus(&self) -> u32 {
        self.ready.saturating_sub(self.leaving).saturating_sub(self.target)
    }
}
