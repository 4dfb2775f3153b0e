//! Rolling updates: the new set grows within the surge, the old ones shrink within what may be
//! unavailable. One step does one or the other; only the step that makes the new set does both.

use crate::dialect::apps::decide::{Ending, Pass};
use crate::dialect::apps::read::owned_set::Set;

impl Pass<'_> {
    pub(crate) fn roll(&mut self) -> Ending {
        if self.ensure_new(self.grown_new()).is_err() {
            return Ending::Aside;
        }
        if self.resize_new() || self.shrink_old() {
            return Ending::Rollout;
        }
        if self.was_complete() {
            self.trim_history();
        }
        Ending::Rollout
    }

    /// The size that the new set may have now.
    ///
    /// | n  | room | new | result | because                                  |
    /// |---:|-----:|----:|-------:|------------------------------------------|
    /// | 10 |    3 |   0 |      3 | 13 are allowed, 10 are there             |
    /// | 10 |    0 |   0 |      0 | no room: old ones have to go first       |
    /// |  6 |  102 |   2 |      6 | never more than are wanted in the end    |
    pub(crate) fn grown_new(&self) -> i64 {
        grown(self.deployment.replicas, self.room(), self.new_size())
    }

    /// Whether the new set changes its size.
    fn resize_new(&mut self) -> bool {
        let Some(at) = self.new else { return false }; // made in this step, at its size
        let (had, n) = (self.sets[at].had, self.deployment.replicas);
        if had == n {
            return false;
        }
        let size = if had > n { n } else { self.grown_new() };
        if size == had {
            return false;
        }
        self.resize(at, size);
        true
    }

    /// Whether any old set shrinks.
    fn shrink_old(&mut self) -> bool {
        let n = self.deployment.replicas;
        let least = n - self.deployment.may_be_missing();
        let new_available = self.new_set().map_or(0, Set::wanted_available);
        let new_missing = self.new_size() - new_available;
        let mut most_down = self.total() - least - new_missing;
        if most_down <= 0 {
            return false;
        }
        // A set shrunk to nothing whose status lags serves nobody any more.
        let available = new_available + self.old().map(Set::wanted_available).sum::<i64>();
        let (desired, most) = (n, self.deployment.most());
        let mut shrank = false;
        // First those that serve nobody, which costs no availability.
        for set in self.old_mut().filter(|set| set.is_active()) {
            let missing = set.had - set.counts.available;
            if missing < 0 {
                // Shrunk before, and its status lags: what it reports is already condemned.
                return shrank;
            }
            let down = missing.min(most_down);
            if down > 0 {
                most_down -= down;
                shrank = true;
                set.resize(set.wants - down, desired, most);
            }
        }
        // Then those that serve, down to the least that must stay available.
        let mut room = available - least;
        for set in self.old_mut().filter(|set| set.wants > 0) {
            let down = set.wants.min(room);
            if down > 0 {
                room -= down;
                shrank = true;
                set.resize(set.wants - down, desired, most);
            }
        }
        shrank
    }
}

fn grown(replicas: i64, room: i64, new: i64) -> i64 {
    new + room.min(replicas - new).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_set_grows_into_the_room_there_is() {
        let cases = [
            ("room is the surge", (10, 3, 0), 3),
            ("no room", (10, 0, 0), 0),
            ("never above what is wanted", (6, 102, 2), 6),
            ("no room for one that has some", (10, 0, 5), 5),
            ("nothing there yet", (3, 4, 0), 3),
        ];
        for (name, (replicas, room, new), expected) in cases {
            assert_eq!(grown(replicas, room, new), expected, "{name}");
        }
    }
}
