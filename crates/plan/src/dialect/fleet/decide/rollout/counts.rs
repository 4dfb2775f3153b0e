//! What the budgets of a rolling update are measured against.

/// The clusters of a placement, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many clusters should carry the resources.
    pub target: u32,
    /// `maxUnavailable`, as a number.
    pub max_unavailable: u32,
    /// `maxSurge`, as a number.
    pub max_surge: u32,
    /// Bindings whose resources work.
    pub ready: u32,
    /// Of these, those that are being deleted and may stop working at any time.
    pub leaving: u32,
    /// Bindings whose resources work or may come to work.
    pub can_be_ready: u32,
}

impl Counts {
    /// How many may be unavailable for an update in place: at least one, because otherwise it
    /// could never begin.
    pub fn update_floor(&self) -> u32 {
        self.max_unavailable.max(1)
    }

    /// How many clusters are missing from the target, or may be at any time.
    pub fn missing(&self) -> u32 {
        self.target.saturating_add(self.leaving).saturating_sub(self.ready)
    }

    /// How many surely ready bindings there are beyond the target.
    pub fn surplus(&self) -> u32 {
        self.ready.saturating_sub(self.leaving).saturating_sub(self.target)
    }
}
