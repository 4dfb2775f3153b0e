//! The arithmetic of a rolling update: how many bindings may go, change or come now.

/// What the budgets are measured against.
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

/// How many bindings may be picked, by what happens to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub remove: u32,
    pub update: u32,
    pub bind: u32,
}

impl Counts {
    /// The room for `removals` de-selected bindings, for updates after them, and for binding
    /// new clusters.
    ///
    /// Removals and updates share one budget, removals first: below the floor of
    /// `target - maxUnavailable` surely ready bindings nothing goes. A removal honours a
    /// `maxUnavailable` of 0, which gives moves without downtime; an update in place takes at
    /// least one, because otherwise it could never begin. New clusters have the surge budget of
    /// their own. With a target of 0 there is nothing to keep available.
    ///
    /// | target | mu | surge | ready | leaving | can be | removals | remove | update | bind |
    /// |-------:|---:|------:|------:|--------:|-------:|---------:|-------:|-------:|-----:|
    /// |      3 |  1 |     1 |     3 |       0 |      3 |        0 |      0 |      1 |    1 |
    /// |      3 |  1 |     1 |     2 |       0 |      2 |        0 |      0 |      0 |    2 |
    /// |      2 |  1 |     2 |     2 |       0 |      2 |        2 |      1 |      0 |    2 |
    /// |      2 |  1 |     2 |     2 |       1 |      4 |        1 |      0 |      0 |    0 |
    /// |      5 |  0 |     0 |     5 |       0 |      5 |        1 |      0 |      1 |    0 |
    /// |      0 |  0 |     0 |     0 |       0 |      2 |        2 |      2 |      0 |    0 |
    pub fn room(&self, removals: u32) -> Room {
        let wide = |count: u32| i64::from(count);
        let spare = wide(self.ready) - wide(self.leaving) - wide(self.target);
        let removable = match self.target {
            0 => removals,
            _ => non_negative(spare + wide(self.max_unavailable)).min(removals),
        };
        let updatable = spare + wide(self.update_floor()) - wide(removable);
        let addable = wide(self.target) + wide(self.max_surge) - wide(self.can_be_ready);
        Room { remove: removable, update: non_negative(updatable), bind: non_negative(addable) }
    }

    /// How many may be unavailable for an update in place.
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

fn non_negative(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_leave_this_much_room() {
        // target, mu, surge, ready, leaving, can be ready; removals; remove, update, bind
        let cases = [
            ("update one of three", [3, 1, 1, 3, 0, 3], 0, [0, 1, 1]),
            ("one is unavailable already", [3, 1, 1, 2, 0, 2], 0, [0, 0, 2]),
            ("move two by surge", [2, 1, 2, 2, 0, 2], 2, [1, 0, 2]),
            ("a deleting one is lost already", [2, 1, 2, 2, 1, 4], 1, [0, 0, 0]),
            ("no downtime for removals", [5, 0, 0, 5, 0, 5], 1, [0, 1, 0]),
            ("the surplus goes", [3, 0, 0, 4, 0, 4], 1, [1, 1, 0]),
            ("removals come first", [3, 2, 0, 4, 0, 4], 1, [1, 2, 0]),
            ("nothing to keep", [0, 0, 0, 0, 0, 2], 2, [2, 0, 0]),
            ("first rollout", [3, 1, 1, 0, 0, 0], 0, [0, 0, 4]),
            ("huge budgets", [3, u32::MAX, u32::MAX, 3, 0, 3], 1, [1, u32::MAX - 1, u32::MAX]),
        ];
        for (
            name,
            [target, max_unavailable, max_surge, ready, leaving, can_be_ready],
            removals,
            want,
        ) in cases
        {
            let counts =
                Counts { target, max_unavailable, max_surge, ready, leaving, can_be_ready };
            let Room { remove, update, bind } = counts.room(removals);
            assert_eq!([remove, update, bind], want, "{name}");
        }
    }
}
