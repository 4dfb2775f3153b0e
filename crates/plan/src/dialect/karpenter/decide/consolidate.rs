//! Consolidation: several nodes at once if that works, else one, whenever their pods fit
//! elsewhere or onto one cheaper node.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialect::karpenter::names::label;
use smol_str::SmolStr;

use super::Run;
use super::simulate::{Fresh, Offer, Outcome};
use crate::dialect::karpenter::read::catalogue;
use crate::dialect::karpenter::read::pool::Policy;
use crate::dialect::karpenter::read::reason::Reason;

/// The most nodes that one command takes.
const TOGETHER: usize = 100;

/// How much a search may imagine before it stops for this pass: nodes looked at, all in all.
const EFFORT: usize = 4_000_000;

/// A move is worth it if its share of the savings is at least half its share of the disturbance.
const BALANCE: f64 = 0.5;

impl<'w> Run<'_, 'w> {
    /// Consolidates until nothing more can be saved.
    pub(super) fn consolidate(&mut self) {
        let Some(ground) = &self.ground else { return };
        let size = ground.size().max(1);
        let mut effort = EFFORT / size;
        loop {
            let mut candidates = self.candidates(Reason::Underutilized, |run, at| {
                run.marks[at].consolidatable && run.obstacle(at).is_none()
            });
            self.sort_by_savings(&mut candidates);
            let candidates: Vec<usize> =
                candidates.into_iter().filter(|at| !self.refused.contains_key(at)).collect();
            if candidates.is_empty()
                || !(self.several(&candidates, &mut effort)
                    || self.single(&candidates, &mut effort))
            {
                return;
            }
        }
    }

    /// Why a node that could go would not be consolidated, in upstream's words.
    pub(crate) fn obstacle(&self, at: usize) -> Option<String> {
        let member = &self.cluster.members[at];
        let pool = &self.cluster.pools[member.pool?];
        let name = pool.name();
        if pool.is_static() {
            return Some(format!("NodePool {name:?} has a fixed number of nodes"));
        }
        let kind = member.facts.instance_type.as_deref().unwrap_or_default();
        if !pool.has_catalogue || catalogue::find(kind).is_none() {
            return Some(format!("Instance Type {kind:?} not found"));
        }
        let needed = [
            (label::CAPACITY_TYPE, &member.facts.capacity_type),
            (label::ZONE, &member.facts.zone),
        ];
        for (key, value) in needed {
            if value.is_none() {
                return Some(format!("Node does not have label {key:?}"));
            }
        }
        if pool.consolidate_after.is_none() {
            return Some(format!("NodePool {name:?} has consolidation disabled"));
        }
        if self.is_empty(at) {
            return Some("node is empty".to_owned());
        }
        (pool.policy == Policy::WhenEmpty).then(|| {
            format!("NodePool {name:?} has consolidation policy WhenEmpty, but node is not empty")
        })
    }

    /// The longest run of the best candidates that can go together, found by halving.
    fn several(&mut self, candidates: &[usize], effort: &mut usize) -> bool {
        let mut chosen = self.within_budget(Reason::Underutilized, candidates.to_vec());
        chosen.truncate(TOGETHER);
        let mut best: Option<(usize, Outcome<'w>)> = None;
        let (mut least, mut most) = (1, chosen.len().saturating_sub(1));
        while least <= most && *effort > 0 {
            *effort -= 1;
            let middle = usize::midpoint(least, most);
            let group = &chosen[..=middle];
            let outcome =
                self.saving(group).ok().and_then(|outcome| self.without_swaps(group, outcome));
            match outcome {
                Some(outcome) => {
                    best = Some((middle + 1, outcome));
                    least = middle + 1;
                }
                None => most = middle - 1,
            }
        }
        let Some((length, outcome)) = best else { return false };
        chosen.truncate(length);
        self.start(Reason::Underutilized, chosen, outcome, false);
        true
    }

    /// The first candidate that can go alone, the pools taking turns.
    fn single(&mut self, candidates: &[usize], effort: &mut usize) -> bool {
        for at in self.in_turns(candidates) {
            let room = self.pool_of(at).map_or(0, |pool| self.allowed(pool, Reason::Underutilized));
            if room == 0 {
                continue;
            }
            if *effort == 0 {
                self.unreached.insert(at);
                continue;
            }
            *effort -= 1;
            match self.saving(&[at]) {
                Ok(outcome) => {
                    self.start(Reason::Underutilized, vec![at], outcome, false);
                    return true;
                }
                Err(why) => _ = self.refused.insert(at, why),
            }
        }
        false
    }

    fn in_turns(&self, candidates: &[usize]) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::new();
        let mut queues: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in candidates {
            let Some(pool) = self.pool_of(*at) else { continue };
            if !order.contains(&pool) {
                order.push(pool);
            }
            queues.entry(pool).or_default().push(*at);
        }
        let longest = queues.values().map(Vec::len).max().unwrap_or(0);
        let turn = |turn: usize| order.iter().map(move |pool| (*pool, turn));
        let turns = (0..longest).flat_map(turn);
        turns.filter_map(|(pool, turn)| queues.get(&pool)?.get(turn).copied()).collect()
    }

    /// What happens if `group` goes, provided that it saves money; else why not.
    fn saving(&self, group: &[usize]) -> Result<Outcome<'w>, String> {
        let mut outcome = self.imagine(group, true);
        if let Some(stranded) = outcome.stranded.first() {
            return Err(stranded.clone());
        }
        let price: f64 = group.iter().map(|at| self.price(*at)).sum();
        match outcome.fresh.len() {
            0 => {}
            1 => {
                let fresh = outcome.fresh.remove(0);
                outcome.fresh.push(self.cheaper(group, fresh, price)?);
            }
            more => return Err(format!("Can't remove without creating {more} candidates")),
        }
        let cheapest = outcome.fresh.first().map_or(0.0, |fresh| cheapest(&fresh.offers));
        self.balance(group, price - cheapest)?;
        Ok(outcome)
    }

    /// The machines that cost less than `price` even at their worst.
    fn cheaper(
        &self,
        group: &[usize],
        mut fresh: Fresh<'w>,
        price: f64,
    ) -> Result<Fresh<'w>, String> {
        let is_spot = |at: &usize| {
            self.cluster.members[*at].facts.capacity_type.as_deref() == Some(catalogue::SPOT)
        };
        let may_be_spot =
            fresh.offers.iter().any(|offer| offer.capacity_type() == Some(catalogue::SPOT));
        if may_be_spot && group.iter().all(is_spot) {
            return Err(
                "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
                    .to_owned(),
            );
        }
        if may_be_spot {
            fresh.offers.retain(|offer| offer.capacity_type() == Some(catalogue::SPOT));
        }
        let mut worst: BTreeMap<SmolStr, f64> = BTreeMap::new();
        for offer in &fresh.offers {
            let price = offer.price().unwrap_or(f64::INFINITY);
            let name = SmolStr::new(offer.type_name().unwrap_or_default());
            let entry = worst.entry(name).or_insert(price);
            *entry = entry.max(price);
        }
        fresh.offers.retain(|offer| {
            worst.get(offer.type_name().unwrap_or_default()).is_some_and(|worst| *worst < price)
        });
        if fresh.offers.is_empty() {
            return Err("Can't replace with a cheaper node".to_owned());
        }
        Ok(fresh)
    }

    /// Several nodes are not replaced by one of a type that one of them has: deleting the
    /// others would do.
    fn without_swaps(&self, group: &[usize], mut outcome: Outcome<'w>) -> Option<Outcome<'w>> {
        let Some(fresh) = outcome.fresh.first_mut() else { return Some(outcome) };
        let mut cheapest: BTreeMap<&str, f64> = BTreeMap::new();
        for at in group {
            let kind = self.cluster.members[*at].facts.instance_type.as_deref()?;
            let entry = cheapest.entry(kind).or_insert(f64::INFINITY);
            *entry = entry.min(self.price(*at));
        }
        let types: BTreeSet<&str> = fresh.offers.iter().filter_map(Offer::type_name).collect();
        let bound = types
            .iter()
            .filter_map(|kind| cheapest.get(kind))
            .copied()
            .fold(f64::INFINITY, f64::min);
        fresh.offers.retain(|offer| offer.price().is_some_and(|price| price < bound));
        (!fresh.offers.is_empty()).then_some(outcome)
    }

    /// Pools with the policy Balanced have to find the savings worth the disturbance.
    fn balance(&self, group: &[usize], savings: f64) -> Result<(), String> {
        let total: f64 = group.iter().map(|at| self.price(*at)).sum();
        let pools: BTreeSet<usize> = group.iter().filter_map(|at| self.pool_of(*at)).collect();
        for pool in
            pools.into_iter().filter(|pool| self.cluster.pools[*pool].policy == Policy::Balanced)
        {
            let of_pool = |at: &&usize| self.pool_of(**at) == Some(pool);
            let price: f64 = group.iter().filter(of_pool).map(|at| self.price(*at)).sum();
            let cost: f64 = group.iter().filter(of_pool).map(|at| self.costs[*at]).sum();
            let all = || (0..self.costs.len()).filter(|at| self.pool_of(*at) == Some(pool));
            let pool_price: f64 = all().map(|at| self.price(at)).sum();
            let pool_cost: f64 = all().map(|at| self.costs[at]).sum();
            let share = if total > 0.0 { savings * price / total } else { 0.0 };
            let score = score(share, pool_price, cost, pool_cost);
            if score.is_none_or(|score| score < BALANCE) {
                let score = score.unwrap_or(0.0);
                return Err(format!(
                    "savings are not worth the disturbance (score {score:.2}, want {BALANCE})"
                ));
            }
        }
        Ok(())
    }
}

/// The share of a pool's cost that a move saves, over the share of its pods that it disturbs.
///
/// | saves | of  | disturbs | of  | score    | because                 |
/// |------:|----:|---------:|----:|----------|-------------------------|
/// |    20 | 100 |        5 | 100 | 4.0      | 20% saved for 5%        |
/// |     5 | 100 |       50 | 100 | 0.1      | 5% saved for half       |
/// |     0 | 100 |       10 | 100 | none     | nothing is saved        |
/// |     5 | 100 |        0 | 100 | infinite | nobody is disturbed     |
fn score(savings: f64, pool_price: f64, cost: f64, pool_cost: f64) -> Option<f64> {
    if savings <= 0.0 || pool_price <= 0.0 || pool_cost <= 0.0 {
        return None;
    }
    if cost <= 0.0 {
        return Some(f64::INFINITY);
    }
    Some((savings / pool_price) / (cost / pool_cost))
}

fn cheapest(offers: &[Offer<'_>]) -> f64 {
    let prices = offers.iter().filter_map(Offer::price);
    prices.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savings_are_weighed_against_the_disturbance() {
        let cases = [
            (20.0, 5.0, "4.00"),
            (10.0, 10.0, "1.00"),
            (5.0, 50.0, "0.10"),
            (0.0, 10.0, "none"),
            (-3.0, 10.0, "none"),
            (5.0, 0.0, "inf"),
        ];
        for (savings, cost, expected) in cases {
            let found = score(savings, 100.0, cost, 100.0);
            let found = found.map_or_else(|| "none".to_owned(), |score| format!("{score:.2}"));
            assert_eq!(found, expected, "{savings} for {cost}");
        }
    }
}
