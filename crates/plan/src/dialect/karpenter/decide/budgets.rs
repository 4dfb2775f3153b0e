//! The budgets of a pool at one instant: which apply to a reason, and when time changes that.

use jiff::{SignedDuration, Timestamp};

use crate::dialect::karpenter::read::budget::{Budget, Coverage};
use crate::dialect::karpenter::read::pool::Pool;
use crate::dialect::karpenter::read::reason::Reason;
use crate::gate::Limit;

/// What the budgets of a pool say at one instant.
#[derive(Clone, Debug)]
pub(crate) struct Budgets<'p> {
    all: &'p [Budget],
    coverage: Coverage,
    /// How many nodes the pool has.
    total: u32,
    /// By index of the budget.
    active: Vec<bool>,
    /// By index of the budget: what its window is while it is open.
    blackouts: Vec<Option<Limit>>,
}

/// A budget that applies.
#[derive(Clone, Debug)]
pub(crate) struct Applicable {
    /// Its place in `spec.disruption.budgets`.
    pub(crate) index: usize,
    /// The most nodes that may be down.
    pub(crate) ceiling: u32,
    /// Present if it is a blackout: no nodes, in a window.
    pub(crate) blackout: Option<Limit>,
}

/// How many changes ahead [`Budgets::find_change`] looks.
const CHANGES_AHEAD: u32 = 64;

impl<'p> Budgets<'p> {
    pub(crate) fn new(pool: &'p Pool<'_>, total: u32, now: Timestamp) -> Self {
        Self::of(&pool.budgets, pool.coverage, total, now)
    }

    fn of(budgets: &'p [Budget], coverage: Coverage, total: u32, now: Timestamp) -> Self {
        let blackouts: Vec<Option<Limit>> =
            budgets.iter().map(|budget| budget.window()?.blackout(now)).collect();
        let active = budgets.iter().zip(&blackouts);
        let active = active.map(|(budget, open)| budget.is_permanent() || open.is_some()).collect();
        Self { all: budgets, coverage, total, active, blackouts }
    }

    /// By index of the budget.
    pub(crate) fn active(&self) -> &[bool] {
        &self.active
    }

    /// Index and text of every budget that cannot be evaluated; any closes the whole pool.
    pub(crate) fn errors(&self) -> impl Iterator<Item = (usize, &'p str)> {
        self.all.iter().enumerate().filter_map(|(at, budget)| Some((at, budget.error()?)))
    }

    /// The most nodes that may be down for `reason`; absent if no budget applies.
    pub(crate) fn ceiling(&self, reason: Reason) -> Option<u32> {
        if self.errors().next().is_some() {
            return Some(0);
        }
        self.smallest(reason).map(|budget| budget.ceiling)
    }

    /// The smallest budget that applies to `reason`, the first of equals.
    pub(crate) fn smallest(&self, reason: Reason) -> Option<Applicable> {
        self.applicable(reason, &self.active).min_by_key(|budget| budget.ceiling)
    }

    /// Every budget that applies to `reason`, the smallest first.
    pub(crate) fn covering(&self, reason: Reason) -> Vec<Applicable> {
        let mut covering: Vec<Applicable> = self.applicable(reason, &self.active).collect();
        covering.sort_by_key(|budget| budget.ceiling);
        covering
    }

    /// When the passing of time alone lets a node go down for `reason`, `down` nodes being down.
    pub(crate) fn frees_at(&self, reason: Reason, down: u32, now: Timestamp) -> Option<Timestamp> {
        let frees = |ceiling: Option<u32>| ceiling.unwrap_or(self.total) > down;
        self.find_change(reason, now, frees)
    }

    /// When the passing of time alone changes the limit for `reason`.
    pub(crate) fn changes_at(&self, reason: Reason, now: Timestamp) -> Option<Timestamp> {
        let today = self.applicable(reason, &self.active).map(|budget| budget.ceiling).min();
        self.find_change(reason, now, |ceiling| ceiling != today)
    }

    /// By index of the budget: when its window opens or closes next, if that can change the limit
    /// for `reason`. Every one left out saves a walk through its schedule.
    fn changes(&self, reason: Reason, now: Timestamp) -> Vec<Option<Timestamp>> {
        let permanent: Vec<&Budget> =
            self.all.iter().filter(|it| it.is_permanent() && it.concerns(reason)).collect();
        let is_shadowed = |budget: &Budget| {
            let ceiling = budget.ceiling(self.total);
            permanent.iter().any(|it| {
                let covers =
                    self.coverage == Coverage::All || it.names(reason) == budget.names(reason);
                covers && it.ceiling(self.total) <= ceiling
            })
        };
        let matters = |budget: &&Budget| budget.concerns(reason) && !is_shadowed(budget);
        let change = |budget: &Budget| budget.window()?.changes_at(now);
        self.all.iter().map(|budget| Some(budget).filter(matters).and_then(change)).collect()
    }

    /// The first of the next changes after which the limit for `reason` is as asked for.
    fn find_change(
        &self,
        reason: Reason,
        now: Timestamp,
        is_so: impl Fn(Option<u32>) -> bool,
    ) -> Option<Timestamp> {
        let (mut active, mut changes) = (self.active.clone(), self.changes(reason, now));
        for _ in 0..CHANGES_AHEAD {
            let at = changes.iter().flatten().copied().min()?;
            for (index, budget) in self.all.iter().enumerate() {
                if changes[index] == Some(at) {
                    active[index] = budget.window().is_some_and(|it| it.blackout(at).is_some());
                    changes[index] = budget.window().and_then(|it| it.changes_at(at));
                }
            }
            let ceiling = self.applicable(reason, &active).map(|budget| budget.ceiling).min();
            if is_so(ceiling) {
                return Some(at);
            }
            if at.duration_since(now) > SignedDuration::from_hours(24 * 366) {
                return None;
            }
        }
        None
    }

    /// The budgets that apply to `reason` while these are active.
    ///
    /// | budgets         | coverage | Drifted: | Empty: | because              |
    /// |-----------------|----------|----------|--------|----------------------|
    /// | 10 [Drifted], 5 | all      | 10, 5    | 5      | 5 covers all reasons |
    /// | 10 [Drifted], 5 | unlisted | 10       | 5      | Drifted has its own  |
    fn applicable<'b>(
        &'b self,
        reason: Reason,
        active: &'b [bool],
    ) -> impl Iterator<Item = Applicable> + 'b {
        let open = move || self.all.iter().enumerate().filter(|(at, _)| active[*at]);
        let is_named =
            self.coverage == Coverage::Unlisted && open().any(|(_, it)| it.names(reason));
        let covers = move |it: &Budget| it.names(reason) || !is_named && it.concerns(reason);
        open().filter(move |(_, budget)| covers(budget)).map(|(index, budget)| Applicable {
            index,
            ceiling: budget.ceiling(self.total),
            blackout: self.blackouts[index]
                .as_ref()
                .filter(|_| budget.ceiling(self.total) == 0)
                .cloned(),
        })
    }
}

#[cfg(test)]
mod tests;
