//! Limits: anything that answers "how many more may start in this group, and if none, why".
//!
//! A compartment ceiling, a batch, maxUnavailable, a disruption budget, a window, the order
//! of groups and a failure stop are all limits. The number that may start is the minimum over
//! them, and whoever waits is told about the limit that won.

use crate::hold::HoldReason;

/// One limit as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many more members it lets start.
    pub room: u32,
    /// What a member that finds no room is told.
    pub hold: HoldReason,
}

impl Limit {
    pub fn new(room: u32, hold: HoldReason) -> Self {
        Self { room, hold }
    }

    /// The limit of `ceiling` members in flight, of which `in_flight` are.
    pub fn ceiling(
        name: &'static str,
        in_flight: u32,
        ceiling: u32,
        by: Vec<smol_str::SmolStr>,
    ) -> Self {
        let hold = HoldReason::BudgetSpent { limit: name, in_flight, ceiling, by };
        Self { room: ceiling.saturating_sub(in_flight), hold }
    }
}

/// The limit that leaves the least room; of several, the first. None: no limit at all.
///
/// | rooms      | winner | because                        |
/// |------------|--------|--------------------------------|
/// | 3, 1, 2    | second | it is the smallest             |
/// | 0, 0       | first  | limits are listed by precedence |
/// | (none)     | none   | nothing limits                 |
pub fn tightest(limits: &[Limit]) -> Option<&Limit> {
    limits.iter().min_by_key(|limit| limit.room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_room_wins_and_of_equals_the_first() {
        let limit = |room| Limit::new(room, HoldReason::BatchFull { batch: 1, size: room });
        assert_eq!(tightest(&[limit(3), limit(1), limit(2)]).unwrap().room, 1);
        let closed = [Limit::new(0, HoldReason::Paused), Limit::new(0, HoldReason::Disabled)];
        assert_eq!(tightest(&closed).unwrap().hold, HoldReason::Paused);
        assert_eq!(tightest(&[]), None);
    }
}
