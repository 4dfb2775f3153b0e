//! Scaling: a Deployment that changes size in the middle of a rollout keeps the shares of its
//! ReplicaSets.

use std::cmp::{Ordering, Reverse};

use convoy_api::apps::annotation;

use super::pass::Pass;
use super::set::{Set, by_age};

impl Pass<'_> {
    /// Whether an active set was sized for another size of the Deployment.
    pub(super) fn is_scaling_event(&self) -> bool {
        self.sets.iter().filter(|set| set.is_active()).any(|set| {
            let sized_for = set.size_note(annotation::DESIRED_REPLICAS);
            sized_for.is_some_and(|desired| desired != self.deployment.replicas)
        })
    }

    /// Sizes the sets for the Deployment. False if there is nothing that scaling can do and
    /// the rollout has to go on.
    pub(super) fn scale(&mut self) -> bool {
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
            let new = self.new;
            for at in active.into_iter().filter(|at| Some(*at) != new) {
                self.resize(at, 0);
            }
            return true;
        }
        if self.deployment.recreate {
            return false;
        }
        self.share_out(active);
        true
    }

    /// A set that is alone takes the whole size. Where it has it already, its record of the
    /// Deployment's size is refreshed, or every pass would take this for a scaling event.
    fn scale_alone(&mut self, at: usize) {
        let (n, most) = (self.deployment.replicas, self.deployment.most());
        let set = &self.sets[at];
        let stale = set.is_active()
            && set.size_note(annotation::DESIRED_REPLICAS).is_some_and(|desired| desired != n);
        if set.had != n || stale {
            self.sets[at].resize(n, n, most);
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
        // After a partial failure some have their share; only the others still wait for theirs.
        let stale = |at: &usize| !self.sets[*at].is_sized_for(n, most);
        if active.iter().any(stale) {
            active.retain(stale);
        }
        active.sort_by(|a, b| order(&self.sets[*a], &self.sets[*b], add));
        let fallback = self.deployment.stored("replicas");
        let mut sizes = Vec::with_capacity(active.len());
        let mut added = 0;
        for at in &active {
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
        // What rounding left over is the first one's, and what that cannot bear the next one's.
        let mut left = add - added;
        for size in &mut sizes {
            let before = *size;
            *size = (before + left).max(0);
            left -= *size - before;
        }
        for (at, size) in active.into_iter().zip(sizes) {
            self.sets[at].resize(size, n, most);
        }
    }
}

/// The largest first; of equals the younger where replicas are added, the older where they go.
fn order(left: &Set<'_>, right: &Set<'_>, add: i64) -> Ordering {
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

#[cfg(test)]
mod tests {
    use super::*;

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
