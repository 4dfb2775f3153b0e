//! Consolidation: several nodes at once if that works, else one, whenever their pods fit
//! elsewhere or onto one cheaper node.

use std::collections::{BTreeMap, BTreeSet};

use smol_str::SmolStr;

use super::Disruptions;
use super::holds::Refusal;
use super::score::Score;
use super::simulate::{Offer, Replacement, SimulationResult, min_values};
use crate::dialect::karpenter::names::label;
use crate::dialect::karpenter::read::catalogue;
use crate::dialect::karpenter::read::pool::Policy;
use crate::dialect::karpenter::read::reason::Reason;
use crate::gate::{self, Limit, Permit};

/// What is missing to know the price of a node.
enum Lack<'n> {
    /// Its instance type has this name, which is not in the catalogue.
    Type(&'n str),
    Label(&'static str),
}

/// The most nodes that one command takes.
const TOGETHER: usize = 100;

/// How much a search may simulate in one pass: nodes looked at, all in all.
const EFFORT: usize = 4_000_000;

/// How many cheaper types there have to be for a spot node that takes the place of one.
const SPOT_CHOICE: usize = 15;

/// A move is worth it if its share of the savings is at least half its share of the disturbance.
pub(crate) const BALANCE: f64 = 0.5;

impl<'w> Disruptions<'_, 'w> {
    /// Consolidates until nothing more can be saved.
    pub(super) fn consolidate(&mut self) {
        let Some(inventory) = &self.inventory else { return };
        let mut effort = EFFORT / inventory.size().max(1);
        while self.consolidate_once(&mut effort) {}
        let (_, blocked) = self.consolidation_candidates();
        self.admit(Reason::Underutilized, &blocked);
    }

    /// Starts one command, if there is one.
    fn consolidate_once(&mut self, effort: &mut usize) -> bool {
        let (mut free, _) = self.consolidation_candidates();
        free.retain(|at| !self.refused.contains_key(at));
        self.sort_by_savings(&mut free);
        self.several(&free, effort) || self.single(&free, effort)
    }

    /// Members that would save money, and those of them that have an obstacle.
    fn consolidation_candidates(&self) -> (Vec<usize>, Vec<usize>) {
        let candidates = self
            .candidates(|this, at| this.conditions[at].consolidatable && this.is_consolidated(at));
        let is_free = |at: &usize| self.may_go(*at, Reason::Underutilized) && !self.is_target(*at);
        candidates.into_iter().partition(is_free)
    }

    /// Whether consolidation would look at a node: its machine and price are known, it has pods,
    /// and the policy of its pool is not to wait until it is empty.
    pub(super) fn is_consolidated(&self, at: usize) -> bool {
        let pool = self.pool_of(at).map(|pool| &self.cluster.pools[pool]);
        let is_dynamic = pool.is_some_and(|pool| !pool.is_static() && pool.has_catalogue);
        is_dynamic
            && !self.is_empty(at)
            && self.lacks(at).is_none()
            && pool.is_some_and(|pool| pool.consolidate_after.is_some())
            && pool.is_some_and(|pool| pool.policy != Policy::WhenEmpty)
    }

    /// What a node lacks whose price has to be known.
    fn lacks(&self, at: usize) -> Option<Lack<'_>> {
        let machine = self.cluster.members[at].machine();
        let kind = machine.instance_type.as_deref().unwrap_or_default();
        if catalogue::find(kind).is_none() {
            Some(Lack::Type(kind))
        } else if machine.capacity_type.is_none() {
            Some(Lack::Label(label::CAPACITY_TYPE))
        } else if machine.zone.is_none() {
            Some(Lack::Label(label::ZONE))
        } else {
            None
        }
    }

    /// Why consolidation does not look at a node of the own pool that pods have left alone for long
    /// enough, in upstream's words. That a pool has consolidation switched off is said of the pool.
    pub(crate) fn unsuited(&self, at: usize) -> Option<String> {
        let (pool, member) = (self.cluster.pool(), &self.cluster.members[at]);
        let is_due = self.conditions[at].consolidatable && self.obstacles[at].is_none();
        if pool.is_static() || !pool.has_catalogue || !is_due || member.is_leaving() {
            return None;
        }
        match self.lacks(at) {
            Some(Lack::Type(kind)) => Some(format!("Instance Type {kind:?} not found")),
            Some(Lack::Label(key)) => Some(format!("Node does not have label {key:?}")),
            None if self.is_empty(at) || pool.policy != Policy::WhenEmpty => None,
            None => Some(format!(
                "NodePool {:?} has consolidation policy WhenEmpty, but node is not empty",
                pool.name()
            )),
        }
    }

    /// The longest run of the best candidates that can go together, found by halving.
    fn several(&mut self, candidates: &[usize], effort: &mut usize) -> bool {
        let (mut chosen, permit) = self.within_limits(candidates);
        let Some(permit) = permit else { return false };
        chosen.truncate(TOGETHER);
        let mut best: Option<(usize, SimulationResult<'w>)> = None;
        let (mut least, mut most) = (1, chosen.len().saturating_sub(1));
        while least <= most && *effort > 0 {
            *effort -= 1;
            let middle = usize::midpoint(least, most);
            let group = &chosen[..=middle];
            let result =
                self.saving(group).ok().and_then(|result| self.without_swaps(group, result));
            match result {
                Some(result) => {
                    best = Some((middle + 1, result));
                    least = middle + 1;
                }
                None => most = middle - 1,
            }
        }
        self.is_cut_short |= *effort == 0 && least <= most;
        let Some((length, result)) = best else { return false };
        chosen.truncate(length);
        self.start(Reason::Underutilized, chosen, result, permit);
        true
    }

    /// As many of each pool as the gate lets go together. Those that find no room are told so by
    /// [`Self::single`], once it is known how many really went.
    fn within_limits(&self, candidates: &[usize]) -> (Vec<usize>, Option<Permit>) {
        let mut wanted: BTreeMap<usize, u32> = BTreeMap::new();
        for pool in candidates.iter().filter_map(|at| self.pool_of(*at)) {
            *wanted.entry(pool).or_default() += 1;
        }
        let mut permit = None;
        let mut room: BTreeMap<usize, u32> = BTreeMap::new();
        for (pool, wanted) in wanted {
            let grant = gate::grant(wanted, &self.limits(pool, Reason::Underutilized));
            permit = permit.or(grant.permit());
            room.insert(pool, grant.count);
        }
        let mut take = |at: &usize| {
            let room = self.pool_of(*at).and_then(|pool| room.get_mut(&pool));
            room.is_some_and(|room| {
                let takes = *room > 0;
                *room = room.saturating_sub(1);
                takes
            })
        };
        (candidates.iter().copied().filter(|at| take(at)).collect(), permit)
    }

    /// The first candidate that can go alone, the pools taking turns.
    fn single(&mut self, candidates: &[usize], effort: &mut usize) -> bool {
        let reason = Reason::Underutilized;
        let mut limits: BTreeMap<usize, Vec<Limit>> = BTreeMap::new();
        for at in self.in_turns(candidates) {
            let Some(pool) = self.pool_of(at) else { continue };
            let limits = limits.entry(pool).or_insert_with(|| self.limits(pool, reason));
            let candidate = vec![self.candidate(at, reason, limits)];
            let permit = self.ask(pool, reason, candidate, limits, &mut BTreeSet::new());
            let Some(permit) = permit else { continue };
            if *effort == 0 {
                self.unreached.insert(at);
                continue;
            }
            *effort -= 1;
            match self.saving(&[at]) {
                Ok(result) => {
                    self.start(reason, vec![at], result, permit);
                    return true;
                }
                Err(text) => _ = self.refused.insert(at, Refusal { reason, text }),
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
    fn saving(&self, group: &[usize]) -> Result<SimulationResult<'w>, String> {
        let mut result = self.simulate(group, true);
        if let Some(stranded) = result.stranded.first() {
            return Err(stranded.clone());
        }
        let price: f64 = group.iter().map(|at| self.price(*at)).sum();
        match result.replacements.len() {
            0 => {}
            1 => {
                let replacement = result.replacements.remove(0);
                result.replacements.push(self.cheaper(group, replacement, price)?);
            }
            more => return Err(format!("Can't remove without creating {more} candidates")),
        }
        let cheapest =
            result.replacements.first().map_or(0.0, |replacement| cheapest(&replacement.offers));
        result.scores = self.balance(group, price - cheapest)?;
        Ok(result)
    }

    /// The machines that cost less than `price` even at their worst.
    fn cheaper(
        &self,
        group: &[usize],
        mut replacement: Replacement<'w>,
        price: f64,
    ) -> Result<Replacement<'w>, String> {
        let is_spot = |at: &usize| {
            self.cluster.members[*at].machine().capacity_type.as_deref() == Some(catalogue::SPOT)
        };
        let may_be_spot =
            replacement.offers.iter().any(|offer| offer.capacity_type() == Some(catalogue::SPOT));
        let is_spot_to_spot = may_be_spot && group.iter().all(is_spot);
        if is_spot_to_spot && !self.cluster.gates.spot_to_spot_consolidation {
            return Err(
                "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
                    .to_owned(),
            );
        }
        if may_be_spot {
            replacement.offers.retain(|offer| offer.capacity_type() == Some(catalogue::SPOT));
        }
        let mut worst: BTreeMap<SmolStr, f64> = BTreeMap::new();
        for offer in &replacement.offers {
            let price = offer.price().unwrap_or(f64::INFINITY);
            let name = SmolStr::new(offer.type_name().unwrap_or_default());
            let entry = worst.entry(name).or_insert(price);
            *entry = entry.max(price);
        }
        replacement.offers.retain(|offer| {
            worst.get(offer.type_name().unwrap_or_default()).is_some_and(|worst| *worst < price)
        });
        if replacement.offers.is_empty() {
            return Err("Can't replace with a cheaper node".to_owned());
        }
        let pool = &self.cluster.pools[replacement.pool];
        if let Some(why) = min_values::unmet(pool, &replacement.offers) {
            return Err(format!("Filtering by price: {why}"));
        }
        if is_spot_to_spot && group.len() == 1 {
            return self.with_choice(replacement);
        }
        Ok(replacement)
    }

    /// A spot node is replaced by another only if the provider has a choice among many types: one
    /// that was chosen for its price alone is likely to be interrupted. The cheapest are asked for.
    fn with_choice(&self, mut replacement: Replacement<'w>) -> Result<Replacement<'w>, String> {
        let mut prices: BTreeMap<SmolStr, f64> = BTreeMap::new();
        for offer in &replacement.offers {
            let price = offer.price().unwrap_or(f64::INFINITY);
            let name = SmolStr::new(offer.type_name().unwrap_or_default());
            let entry = prices.entry(name).or_insert(price);
            *entry = entry.min(price);
        }
        if prices.len() < SPOT_CHOICE {
            return Err(format!(
                "SpotToSpotConsolidation requires {SPOT_CHOICE} cheaper instance type options than \
                 the current candidate to consolidate, got {}",
                prices.len()
            ));
        }
        let mut types: Vec<(f64, SmolStr)> = prices.into_iter().map(|(it, at)| (at, it)).collect();
        types.sort_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.cmp(other)));
        let pool = &self.cluster.pools[replacement.pool];
        let all = std::mem::take(&mut replacement.offers);
        // More than these only where minValues asks for more.
        for most in SPOT_CHOICE..=types.len() {
            let is_kept = |offer: &&Offer<'w>| {
                types[..most].iter().any(|(_, name)| Some(name.as_str()) == offer.type_name())
            };
            replacement.offers = all.iter().filter(is_kept).copied().collect();
            if min_values::unmet(pool, &replacement.offers).is_none() {
                break;
            }
        }
        Ok(replacement)
    }

    /// Several nodes are not replaced by one of a type that one of them has: deleting the
    /// others would do.
    fn without_swaps(
        &self,
        group: &[usize],
        mut result: SimulationResult<'w>,
    ) -> Option<SimulationResult<'w>> {
        let Some(replacement) = result.replacements.first_mut() else { return Some(result) };
        let mut cheapest: BTreeMap<&str, f64> = BTreeMap::new();
        for at in group {
            let kind = self.cluster.members[*at].machine().instance_type.as_deref()?;
            let entry = cheapest.entry(kind).or_insert(f64::INFINITY);
            *entry = entry.min(self.price(*at));
        }
        let types: BTreeSet<&str> =
            replacement.offers.iter().filter_map(Offer::type_name).collect();
        let bound = types
            .iter()
            .filter_map(|kind| cheapest.get(kind))
            .copied()
            .fold(f64::INFINITY, f64::min);
        replacement.offers.retain(|offer| offer.price().is_some_and(|price| price < bound));
        let pool = &self.cluster.pools[replacement.pool];
        let does = !replacement.offers.is_empty()
            && min_values::unmet(pool, &replacement.offers).is_none();
        does.then_some(result)
    }

    /// Pools with the policy Balanced have to find the savings worth the disturbance; what each
    /// thinks of them.
    fn balance(&self, group: &[usize], savings: f64) -> Result<Vec<Score>, String> {
        let total: f64 = group.iter().map(|at| self.price(*at)).sum();
        let pools: BTreeSet<usize> = group.iter().filter_map(|at| self.pool_of(*at)).collect();
        let mut scores = Vec::new();
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
            let score = score(share, pool_price, cost, pool_cost).unwrap_or(0.0);
            if score < BALANCE {
                return Err(format!(
                    "savings are not worth the disturbance (score {score:.2}, want {BALANCE})"
                ));
            }
            let (savings, disturbance) = (share / pool_price, cost / pool_cost);
            scores.push(Score { pool, ratio: score, savings, disturbance });
        }
        Ok(scores)
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
