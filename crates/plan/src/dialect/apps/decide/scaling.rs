//! Scaling: a Deployment that changes size in the middle of a rollout keeps the shares of its
//! ReplicaSets.

use std::cmp::{Ordering, Reverse};

use convoy_api::apps::annotation;

use super::{DeploymentDecision, number};
use crate::dialect::apps::read::owned_set::{OwnedSet, by_age};
use crate::gate;
use crate::hold::Hold;

impl DeploymentDecision<'_> {
    /// Whether an active set was sized for another size of the Deployment.
    pub(crate) fn is_scaling_event(&self) -> bool {
        self.sets.iter().filter(|set| set.is_active()).any(|set| {
            let sized_for = set.size_note(annotation::DESIRED_REPLICAS);
            sized_for.is_some_and(|desired| desired != self.deployment.replicas)
        })
    }

    /// Sizes the sets for the Deployment. False if there is nothing that scaling can do and
    /// the rollout has to go on.
    pub(crate) fn scale(&mut self) -> bool {
        let active: Vec<usize> =
            (0..self.sets.len()).filter(|at| self.sets[*at].is_active()).collect();
        if active.len() <= 1 {
            let latest =
                || (0..self.sets.len()).max_by(|a, b| by_age(&self.sets[*a], &self.sets[*b]));
            let candidate = active.first().copied().or(self.new).or_else(latest);
            if let Some(at) = candidate {
                self.scale_alone(at);
            }
            return true;
        }
        if self.is_saturated() {
            self.stop_old_saturated();
            return true;
        }
        if self.deployment.recreate {
            return false;
        }
        self.share_out(active);
        true
    }

    /// A set that is alone takes the whole size. Where it has it already, its record of the
    /// Deployment's size is refreshed, or every step would take this for a scaling event.
    fn scale_alone(&mut self, at: usize) {
        let (n, most) = (self.deployment.replicas, self.deployment.most());
        let (name, had) = (self.sets[at].name(), self.sets[at].had);
        // Pods that other sets still have go first; their sets report when they are gone.
        let growth = gate::grant(number(n - had), &self.growth_limits());
        if let Some(reason) = growth.hold {
            self.holds.push(Hold::of_rollout(reason).in_group(name.clone()));
            return;
        }
        // Fewer replicas were asked for: nothing limits that.
        let shrink = gate::grant(number(had - n), &[]);
        let set = &mut self.sets[at];
        let stale = set.is_active()
            && set.size_note(annotation::DESIRED_REPLICAS).is_some_and(|desired| desired != n);
        let permit = growth.permit().or(shrink.permit());
        if let Some(permit) = permit {
            set.resize(n, permit);
        }
        if permit.is_some() || stale {
            set.record_size(n, most);
        }
    }

    /// With every wanted replica available in the new set, nothing limits how many old ones go.
    fn stop_old_saturated(&mut self) {
        let (n, most) = (self.deployment.replicas, self.deployment.most());
        let size: i64 = self.old().map(|set| set.had).sum();
        let Some(permit) = gate::grant(number(size), &[]).permit() else { return };
        for set in self.old_mut().filter(|set| set.is_active()) {
            set.resize(0, permit);
            set.record_size(n, most);
        }
    }

    /// The new set has every replica that is wanted, and all are available.
    fn is_saturated(&self) -> bool {
        let n = self.deployment.replicas;
        self.new_set().is_some_and(|set| {
            set.had == n
                && set.size_note(annotation::DESIRED_REPLICAS) == Some(n)
                && set.counts.available == n
        })
    }

    /// Spreads what is to be added or taken over the active sets, in proportion to their size.
    fn share_out(&mut self, mut active: Vec<usize>) {
        let (n, most) = (self.deployment.replicas, self.deployment.most());
        let allowed = if n > 0 { most } else { 0 };
        let total: i64 = active.iter().map(|at| self.sets[*at].had).sum();
        let add = allowed - total;
        // All of it or nothing: a part would not be in proportion.
        if let Some(reason) = gate::grant(number(add), &self.growth_limits()).hold {
            self.holds.push(Hold::of_rollout(reason));
            return;
        }
        // After a partial failure some have their share; only the others still wait for theirs.
        let stale = |at: &usize| !self.sets[*at].is_sized_for(n, most);
        if active.iter().any(stale) {
            active.retain(stale);
        }
        active.sort_by(|a, b| order(&self.sets[*a], &self.sets[*b], add));
        let sizes = self.proportional_sizes(&active, add);
        let sized: Vec<(usize, i64)> = active.into_iter().zip(sizes).collect();
        let gain = |(at, size): &(usize, i64)| size - self.sets[*at].had;
        let down: i64 = sized.iter().map(|it| (-gain(it)).max(0)).sum();
        let up: i64 = sized.iter().map(|it| gain(it).max(0)).sum();
        // The sizes keep what maxUnavailable needs: nothing else limits a smaller one.
        let shrink = gate::grant(number(down), &[]);
        let shrinking = sized.iter().find(|it| gain(it) < 0).map(|(at, _)| *at);
        let growth = gate::grant(number(up), self.share_limits(shrinking).as_slice());
        for (at, size) in sized {
            let set = &mut self.sets[at];
            let grows = size > set.had;
            if let Some(reason) = growth.hold.clone().filter(|_| grows) {
                // Its record stays stale, so that the next step finds it again.
                self.holds.push(Hold::of_rollout(reason).in_group(set.name().clone()));
                continue;
            }
            if let Some(permit) = if grows { growth.permit() } else { shrink.permit() } {
                set.resize(size, permit);
            }
            set.record_size(n, most);
        }
    }

    /// Sizes of the `active` sets, in their order, once `add` replicas are spread over them.
    fn proportional_sizes(&self, active: &[usize], add: i64) -> Vec<i64> {
        let (n, most) = (self.deployment.replicas, self.deployment.most());
        let fallback = self.deployment.stored.replicas;
        let mut sizes = Vec::with_capacity(active.len());
        let mut added = 0;
        for at in active {
            let set = &self.sets[*at];
            let base = set.size_note(annotation::MAX_REPLICAS).filter(|base| *base > 0);
            let share = share(set.had, n, most, base.unwrap_or(fallback));
            let left = add - added;
            let share = match add {
                _ if left == 0 => 0,
                1.. => share.min(left),
                _ => share.max(left),
            };
            added += share;
            sizes.push(set.had + share);
        }
        // The rest that rounding leaves goes to the first set, and what does not fit to the next.
        let mut left = add - added;
        for size in &mut sizes {
            let before = *size;
            *size = (before + left).max(0);
            left -= *size - before;
        }
        let available: Vec<i64> =
            active.iter().map(|at| self.sets[*at].wanted_available()).collect();
        let lost: i64 =
            sizes.iter().zip(&available).map(|(size, serve)| (serve - size).max(0)).sum();
        // Replicas that do not serve go in place of those that have to stay: nobody waits for it.
        let loss = gate::grant(number(lost), &[self.serving_limit()]);
        spare(&mut sizes, &available, lost - i64::from(loss.count));
        sizes
    }
}

/// The largest first; of equals the younger where replicas are added, the older where they go.
fn order(left: &OwnedSet<'_>, right: &OwnedSet<'_>, add: i64) -> Ordering {
    let age = if add > 0 { by_age(right, left) } else { by_age(left, right) };
    Reverse(left.had).cmp(&Reverse(right.had)).then(age)
}

/// How many replicas a set of `size` gains or loses when the most goes from `base` to `most`.
///
/// | size | n  | most | base | share | because                          |
/// |-----:|---:|-----:|-----:|------:|----------------------------------|
/// |    8 | 30 |   33 |   13 |    12 | 20.3 rounds to 20                |
/// |    1 |  5 |    5 |    3 |     1 | 1.7 rounds to 2                  |
/// |    1 |  3 |    3 |    2 |     1 | 1.5 rounds away from zero        |
/// |    4 |  0 |    1 |    9 |    −4 | to zero: all of it               |
/// |    4 |  9 |    9 |    0 |     0 | nothing to measure the share by  |
fn share(size: i64, n: i64, most: i64, base: i64) -> i64 {
    if n == 0 {
        return -size;
    }
    if base <= 0 {
        return 0;
    }
    let (size, most, base) = (i128::from(size), i128::from(most), i128::from(base));
    let rounded = (2 * size * most + base) / (2 * base);
    i64::try_from(rounded - size).unwrap_or(i64::MAX)
}

/// Shares follow sizes, not health: they may take available replicas that maxUnavailable needs.
/// Of these, `short` stay, and others, which are not available, go instead.
///
/// | sizes | available | short | result | because                                     |
/// |-------|-----------|------:|--------|---------------------------------------------|
/// | 2 2 1 | 3 0 0     |     1 | 3 1 1  | three serve, and none of them may go        |
/// | 2 2 1 | 3 0 0     |     0 | 2 2 1  | one of the three may go                     |
/// | 2 2 1 | 3 2 1     |     1 | 2 2 1  | everything serves: nobody goes instead      |
fn spare(sizes: &mut [i64], available: &[i64], mut short: i64) {
    for at in 0..sizes.len() {
        for other in 0..sizes.len() {
            let missing = available[at] - sizes[at];
            let idle = sizes[other] - available[other];
            let moved = missing.min(idle).min(short).max(0);
            sizes[at] += moved;
            sizes[other] -= moved;
            short -= moved;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_that_serve_are_spared_where_the_promise_needs_them() {
        let cases = [
            ([2, 2, 1], [3, 0, 0], 1, [3, 1, 1]),
            ([2, 2, 1], [3, 0, 0], 0, [2, 2, 1]),
            ([2, 2, 1], [3, 2, 1], 1, [2, 2, 1]),
            ([1, 1, 3], [3, 2, 0], 3, [3, 2, 0]),
            ([0, 0, 2], [1, 1, 0], 2, [1, 1, 0]),
        ];
        for (mut sizes, available, short, expected) in cases {
            spare(&mut sizes, &available, short);
            assert_eq!(sizes, expected, "{available:?}, of which {short} more have to stay");
        }
    }

    #[test]
    fn shares_are_rounded_to_the_nearest() {
        let cases = [
            ((8, 30, 33, 13), 12),
            ((1, 5, 5, 3), 1),
            ((1, 3, 3, 2), 1),
            ((4, 0, 1, 9), -4),
            ((4, 9, 9, 0), 0),
            ((8, 4, 4, 9), -4),
            ((60_000, 90_000, 90_000, 120_000), -15_000), // beyond 32 bits on the way
        ];
        for ((size, n, most, base), expected) in cases {
            assert_eq!(share(size, n, most, base), expected, "{size} of {base} to {most}");
        }
    }
}
