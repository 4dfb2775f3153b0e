//! The methods of disruption that need no search: expiration, emptiness, drift.

use std::collections::{BTreeMap, BTreeSet};

use super::Disruptions;
use super::holds::Refusal;
use super::replicas::STATIC_CAPACITY_OFF;
use super::simulate::{Replacement, SimulationResult};
use crate::dialect::karpenter::read::pool::Expiration;
use crate::dialect::karpenter::read::reason::Reason;
use crate::gate::{self, Candidate, Limit};

impl Disruptions<'_, '_> {
    /// Claims that are too old, in pools where no budget applies to that: nothing limits them.
    pub(super) fn expire_forcefully(&mut self) {
        let cluster = self.cluster;
        let is_old = |(at, member): &(usize, &_)| {
            let member: &super::Member<'_> = member;
            let pool = member.pool.map(|pool| &cluster.pools[pool]);
            !member.facts.is_deleting
                && !self.repairs.starts.contains(at)
                && pool.is_some_and(|pool| pool.expiration == Expiration::Forceful)
                && self.conditions[*at].expires_at.is_some_and(|at| at <= cluster.now)
        };
        let old = cluster.members.iter().enumerate().filter(is_old);
        let old = old.map(|(at, member)| Candidate::free(member.name(), at)).collect();
        let admission = gate::admit(old, &[]);
        let Some(permit) = admission.permit() else { return };
        for member in admission.starts {
            let result = SimulationResult::default();
            self.start(Reason::Expired, vec![member.index], result, permit);
            self.commands.last_mut().expect("just started").is_forced = true;
        }
    }

    /// Budgeted expiration: empty nodes together, others one by one with replacements.
    pub(super) fn expire(&mut self) {
        let cluster = self.cluster;
        let mut old = self.candidates(|this, at| this.conditions[at].expired);
        let since = |at: usize| {
            let noted = cluster.members[at].facts.expired.as_ref().and_then(|it| it.since);
            noted.or(self.conditions[at].expires_at)
        };
        old.sort_by_key(|at| (since(*at), cluster.members[*at].name()));
        let (idle, busy): (Vec<usize>, Vec<usize>) =
            old.into_iter().partition(|at| cluster.is_reschedulable_free(&cluster.members[*at]));
        self.together(Reason::Expired, &idle);
        self.one_by_one(Reason::Expired, &busy);
    }

    /// Empty nodes, the dearest first.
    pub(super) fn empty(&mut self) {
        let is_idle =
            |this: &Self, at: usize| this.conditions[at].consolidatable && this.is_empty(at);
        let mut idle = self.candidates(is_idle);
        self.sort_by_savings(&mut idle);
        self.together(Reason::Empty, &idle);
    }

    /// Drifted nodes of static pools: each is replaced by one from the bare template.
    pub(super) fn drift_static(&mut self) {
        for pool in 0..self.cluster.pools.len() {
            if !self.cluster.pools[pool].is_static() {
                continue;
            }
            let drifted = self.drifted(|this, at| this.pool_of(at) == Some(pool));
            if !self.cluster.gates.static_capacity {
                let off =
                    || Refusal { reason: Reason::Drifted, text: STATIC_CAPACITY_OFF.to_owned() };
                self.refused.extend(drifted.into_iter().map(|at| (at, off())));
                continue;
            }
            let (admitted, permit) = self.admit(Reason::Drifted, &drifted);
            let Some(permit) = permit else { continue };
            for at in admitted {
                let replacements = vec![Replacement::of_template(pool)];
                let result = SimulationResult { replacements, ..SimulationResult::default() };
                self.start(Reason::Drifted, vec![at], result, permit);
            }
        }
    }

    /// Drifted nodes of dynamic pools: the idle ones first, then by how long ago they drifted.
    pub(super) fn drift(&mut self) {
        let cluster = self.cluster;
        let dynamic = |this: &Self, at: usize| {
            this.pool_of(at).is_some_and(|pool| !cluster.pools[pool].is_static())
        };
        let mut drifted = self.drifted(dynamic);
        drifted.sort_by_key(|at| !cluster.is_reschedulable_free(&cluster.members[*at]));
        self.one_by_one(Reason::Drifted, &drifted);
    }

    fn drifted(&self, filter: impl Fn(&Self, usize) -> bool) -> Vec<usize> {
        let is_drifted =
            |this: &Self, at: usize| this.conditions[at].drifted.is_some() && filter(this, at);
        let mut drifted = self.candidates(is_drifted);
        let name = |at: usize| self.cluster.members[at].name();
        drifted.sort_by_key(|at| (self.conditions[*at].drifted_since, name(*at)));
        drifted
    }

    /// One command for all that the gate admits, without replacements.
    fn together(&mut self, reason: Reason, members: &[usize]) {
        let (admitted, permit) = self.admit(reason, members);
        if let Some(permit) = permit {
            self.start(reason, admitted, SimulationResult::default(), permit);
        }
    }

    /// One command per node, each with the replacements that its pods need. Whether a node goes
    /// depends on where the pods of those before it went, so that each is asked about by itself;
    /// but once the limits of a pool are full, nobody else of it goes, and the rest is told at once.
    fn one_by_one(&mut self, reason: Reason, members: &[usize]) {
        let mut limits: BTreeMap<usize, Vec<Limit>> = BTreeMap::new();
        let mut full: BTreeSet<usize> = BTreeSet::new();
        for (place, at) in members.iter().enumerate() {
            let Some(pool) = self.pool_of(*at).filter(|pool| !full.contains(pool)) else {
                continue;
            };
            let of_pool = limits.entry(pool).or_insert_with(|| self.limits(pool, reason));
            if gate::is_full(of_pool) {
                full.insert(pool);
                let rest = members[place..].iter().filter(|at| self.pool_of(**at) == Some(pool));
                let rest = rest.map(|at| self.candidate(*at, reason, of_pool)).collect();
                self.ask(pool, reason, rest, of_pool, &mut BTreeSet::new());
                continue;
            }
            let candidate = vec![self.candidate(*at, reason, of_pool)];
            let permit = self.ask(pool, reason, candidate, of_pool, &mut BTreeSet::new());
            let Some(permit) = permit else { continue };
            let result = self.simulate(&[*at], false);
            if let Some(stranded) = result.stranded.first() {
                self.refused.insert(*at, Refusal { reason, text: stranded.clone() });
            } else {
                if self.goes_down(*at) {
                    gate::spend(of_pool, self.cluster.members[*at].name());
                }
                self.start(reason, vec![*at], result, permit);
            }
        }
    }
}
