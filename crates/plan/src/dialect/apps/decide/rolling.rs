//! Rolling updates: the new set grows within maxSurge, the old ones shrink within maxUnavailable.
//! A step does one or the other; only the step that creates the new set does both.

use super::{DeploymentDecision, StatusScope, number};
use crate::gate::{self, Grant, Permit};
use crate::hold::Hold;

impl DeploymentDecision<'_> {
    pub(super) fn roll(&mut self) -> StatusScope {
        let growth = self.new_growth();
        if self.ensure_new(&growth).is_err() {
            return StatusScope::Conditions;
        }
        let resized = self.resize_new(&growth);
        let removal = self.shrink_old(resized);
        self.hold_new(&growth);
        self.hold_old(&removal);
        if !resized && removal.count == 0 && self.was_complete() {
            self.trim_history();
        }
        StatusScope::Progress
    }

    /// How many replicas the new set may gain now.
    ///
    /// | n  | room | new | count | because                               |
    /// |---:|-----:|----:|------:|---------------------------------------|
    /// | 10 |    3 |   0 |     3 | 13 are allowed, 10 are there          |
    /// | 10 |    0 |   0 |     0 | no room: old ones have to go first    |
    /// |  6 |  102 |   2 |     4 | never more than are wanted in the end |
    pub(super) fn new_growth(&self) -> Grant {
        gate::grant(self.new_lacks(), &self.growth_limits())
    }

    /// Removes old replicas, first those that are not available, then the others.
    fn shrink_old(&mut self, resized: bool) -> Grant {
        let size: i64 = self.old().map(|set| set.wants).sum();
        let removal = gate::grant(number(size), &self.removal_limits(resized));
        if let Some(permit) = removal.permit() {
            self.remove_old(i64::from(removal.count), permit);
        }
        removal
    }

    fn remove_old(&mut self, mut left: i64, permit: Permit) {
        let (desired, most) = (self.deployment.replicas, self.deployment.most());
        for spare_available in [true, false] {
            for set in self.old_mut().filter(|set| set.wants > 0) {
                let idle = (set.had - set.counts.available).clamp(0, set.wants);
                let down = if spare_available { idle } else { set.wants }.min(left);
                if down > 0 {
                    left -= down;
                    set.resize(set.wants - down, permit);
                    set.record_size(desired, most);
                }
            }
        }
    }

    /// Tells why old replicas are still there.
    fn hold_old(&mut self, removal: &Grant) {
        let Some(reason) = &removal.hold else { return };
        let waiting = self.old().filter(|set| set.wants > 0);
        let holds: Vec<Hold> = waiting
            .map(|set| Hold::of_rollout(reason.clone()).in_group(set.name().clone()))
            .collect();
        self.holds.extend(holds);
    }
}
