//! How a trial of a hub and its members ends, once nothing fails any more.

use super::random::Random;

/// The last action of the users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// A release that works: it reaches every cluster.
    Released,
    /// One that does not: it stops where the strategy says.
    Contained,
    /// The rollout is deleted: nothing is left of it.
    Deleted,
}

impl Ending {
    pub(super) fn random(random: &mut Random) -> Self {
        match random.between(0, 9) {
            0..=6 => Self::Released,
            7 => Self::Contained,
            _ => Self::Deleted,
        }
    }
}
