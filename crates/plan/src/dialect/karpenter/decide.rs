//! What would be started now: upstream's disruption loop with time standing still, run until
//! it finds nothing more. Every start counts as down, waits succeed, replacements stay
//! uninitialized, and nodes that pods are sent to are no longer candidates.

pub(crate) mod command;
pub(crate) mod conditions;
pub(crate) mod consolidate;
pub(crate) mod obstacle;
pub(crate) mod simulate;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use smol_str::SmolStr;

use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::catalogue;
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::hash;
use crate::dialect::karpenter::read::pod::Pod;
use crate::dialect::karpenter::read::pool::Expiration;
use crate::dialect::karpenter::read::reason::Reason;
use crate::parallel;
use conditions::Marks;
use obstacle::Rejection;
use simulate::{Fresh, Ground, Outcome, Question, simulate};

/// One disruption: the members it takes, and the nodes it makes for their pods.
#[derive(Clone, Debug)]
pub(crate) struct Command<'w> {
    pub(crate) reason: Reason,
    /// Budgets do not apply: the claim is simply too old.
    pub(crate) is_forced: bool,
    pub(crate) members: Vec<usize>,
    pub(crate) replacements: Vec<Fresh<'w>>,
    /// The same for the same members, reason and number of replacements.
    pub(crate) id: String,
}

/// The loop under way, and afterwards its result.
#[derive(Debug)]
pub(crate) struct Run<'c, 'w> {
    pub(super) cluster: &'c Cluster<'w>,
    /// Present if there are pods to find places for.
    pub(super) ground: Option<Ground<'c, 'w>>,
    /// By index of the member; absent for members of pools that are not read.
    pub(crate) marks: Vec<Marks>,
    pub(crate) rejections: Vec<Option<Rejection>>,
    /// 1, and what evicting its pods costs; by index of the member.
    pub(crate) costs: Vec<f64>,
    /// By index of the pool.
    pub(super) down: Vec<u32>,
    /// Members on their way out, by now.
    pub(super) leaving: BTreeSet<usize>,
    /// Nodes that pods were sent to by a command.
    pub(super) used: BTreeSet<SmolStr>,
    pub(crate) commands: Vec<Command<'w>>,
    /// Why a candidate was not taken although its budget would have let it.
    pub(crate) refused: BTreeMap<usize, String>,
    /// Candidates that the last search for savings did not get to.
    pub(crate) unreached: BTreeSet<usize>,
}

impl<'c, 'w> Run<'c, 'w> {
    /// Runs the loop to its end.
    pub(crate) fn new(cluster: &'c Cluster<'w>, daemons: &[&'w Object]) -> Self {
        let has_pods = !cluster.pods.is_empty() || !cluster.pending.is_empty();
        let (marks, rejections) = judged(cluster);
        let mut run = Self {
            cluster,
            ground: has_pods.then(|| Ground::new(cluster, daemons)),
            marks,
            rejections,
            costs: cluster.members.iter().map(|member| cost(cluster, member)).collect(),
            down: cluster.counts.iter().map(|count| count.down).collect(),
            leaving: BTreeSet::new(),
            used: BTreeSet::new(),
            commands: Vec::new(),
            refused: BTreeMap::new(),
            unreached: BTreeSet::new(),
        };
        let leaving = cluster.members.iter().enumerate().filter(|(_, member)| member.is_leaving());
        run.leaving = leaving.map(|(at, _)| at).collect();
        run.expire_forcefully();
        run.expire();
        run.empty();
        run.drift_static();
        run.drift();
        run.consolidate();
        run
    }

    /// How many more members of `pool` may be started for `reason`.
    pub(super) fn allowed(&self, pool: usize, reason: Reason) -> u32 {
        let total = self.cluster.counts[pool].total;
        self.cluster.limits[pool].allowed(reason, total, self.down[pool])
    }

    /// The members that may be disrupted for `reason` and pass `filter`.
    pub(super) fn candidates(
        &self,
        reason: Reason,
        filter: impl Fn(&Self, usize) -> bool,
    ) -> Vec<usize> {
        let is_candidate = |at: &usize| {
            let member = &self.cluster.members[*at];
            let node = member.node.map(|node| node.object.name());
            filter(self, *at)
                && self.may_go(*at, reason)
                && !self.leaving.contains(at)
                && node.is_some_and(|node| self.used.is_empty() || !self.used.contains(node))
        };
        (0..self.cluster.members.len()).filter(is_candidate).collect()
    }

    /// Whether nothing but a deadline stands in the way; drift has such a deadline.
    pub(crate) fn may_go(&self, at: usize, reason: Reason) -> bool {
        match &self.rejections[at] {
            None => true,
            Some(rejection) => {
                let member = &self.cluster.members[at];
                !reason.is_graceful()
                    && rejection.is_by_pods()
                    && member.facts.grace_period.is_some()
            }
        }
    }

    /// Whether it has no pods that would have to move.
    pub(crate) fn is_empty(&self, at: usize) -> bool {
        self.costs[at] <= 1.0
    }

    pub(super) fn pool_of(&self, at: usize) -> Option<usize> {
        self.cluster.members[at].pool
    }

    /// Imagines members gone; without pods there is nothing to imagine.
    pub(super) fn imagine(&self, candidates: &[usize], is_consolidation: bool) -> Outcome<'w> {
        let question = Question { candidates, leaving: &self.leaving, is_consolidation };
        self.ground.as_ref().map_or_else(Outcome::default, |ground| simulate(ground, question))
    }

    /// Starts a command: its members are down from now on.
    pub(super) fn start(
        &mut self,
        reason: Reason,
        members: Vec<usize>,
        outcome: Outcome<'w>,
        is_forced: bool,
    ) {
        let names: Vec<&str> = members.iter().map(|at| self.cluster.members[*at].name()).collect();
        let count = outcome.fresh.len();
        let id = hash::fingerprint(&format!("{}/{count}/{}", reason.word(), names.join(",")));
        for at in &members {
            let member = &self.cluster.members[*at];
            if let Some(pool) = member.pool.filter(|_| member.is_counted() && !member.is_down()) {
                self.down[pool] += 1;
            }
            self.leaving.insert(*at);
            self.refused.remove(at);
        }
        self.used.extend(outcome.used);
        if let Some(ground) = &mut self.ground {
            for (at, fresh) in
                outcome.fresh.iter().enumerate().filter(|(_, fresh)| !fresh.offers.is_empty())
            {
                ground.plan(fresh, &format!("{id}-{at}"));
            }
        }
        let replacements = outcome.fresh;
        self.commands.push(Command { reason, is_forced, members, replacements, id });
    }

    /// What a member's machine costs per hour; 0 if that is not known.
    pub(super) fn price(&self, at: usize) -> f64 {
        let member = &self.cluster.members[at];
        let kind = member.facts.instance_type.as_deref().and_then(catalogue::find);
        let capacity = member.facts.capacity_type.as_deref();
        kind.zip(capacity).and_then(|(kind, capacity)| kind.price(capacity)).unwrap_or(0.0)
    }

    /// Claims that are too old, in pools where no budget holds that up.
    fn expire_forcefully(&mut self) {
        let now = self.cluster.now;
        let is_old = |run: &Self, at: usize| {
            let member = &run.cluster.members[at];
            let pool = member.pool.map(|pool| &run.cluster.pools[pool]);
            !member.facts.is_deleting
                && pool.is_some_and(|pool| pool.expiration == Expiration::Forceful)
                && run.marks[at].expires_at.is_some_and(|at| at <= now)
        };
        let old: Vec<usize> =
            (0..self.cluster.members.len()).filter(|at| is_old(self, *at)).collect();
        for at in old {
            self.start(Reason::Expired, vec![at], Outcome::default(), true);
        }
    }

    /// Budgeted expiration: empty nodes together, others one by one with replacements.
    fn expire(&mut self) {
        let mut old = self.candidates(Reason::Expired, |run, at| run.marks[at].expired);
        let since = |at: usize| {
            let marked =
                self.cluster.members[at].facts.expired.as_ref().and_then(|mark| mark.since);
            marked.or(self.marks[at].expires_at)
        };
        old.sort_by_key(|at| (since(*at), self.cluster.members[*at].name()));
        let (idle, busy): (Vec<usize>, Vec<usize>) = old
            .into_iter()
            .partition(|at| self.cluster.is_reschedulable_free(&self.cluster.members[*at]));
        let taken = self.within_budget(Reason::Expired, idle);
        if !taken.is_empty() {
            self.start(Reason::Expired, taken, Outcome::default(), false);
        }
        self.one_by_one(Reason::Expired, &busy);
    }

    /// Empty nodes, the dearest first, in one command.
    fn empty(&mut self) {
        let is_idle = |run: &Self, at: usize| run.marks[at].consolidatable && run.is_empty(at);
        let mut idle = self.candidates(Reason::Empty, is_idle);
        self.sort_by_savings(&mut idle);
        let taken = self.within_budget(Reason::Empty, idle);
        if !taken.is_empty() {
            self.start(Reason::Empty, taken, Outcome::default(), false);
        }
    }

    /// As many of each pool as its budget has room for.
    pub(super) fn within_budget(&self, reason: Reason, members: Vec<usize>) -> Vec<usize> {
        let mut room: Vec<u32> =
            (0..self.cluster.pools.len()).map(|pool| self.allowed(pool, reason)).collect();
        let mut take = |at: &usize| {
            let room = self.pool_of(*at).and_then(|pool| room.get_mut(pool));
            room.is_some_and(|room| {
                let takes = *room > 0;
                *room = room.saturating_sub(1);
                takes
            })
        };
        members.into_iter().filter(|at| take(at)).collect()
    }

    /// By what a node saves for what it disturbs, most first; then by name.
    pub(super) fn sort_by_savings(&self, members: &mut Vec<usize>) {
        let ratio = |at: usize| self.price(at) / self.costs[at];
        let mut ranked: Vec<(f64, usize)> = members.iter().map(|at| (ratio(*at), *at)).collect();
        ranked.sort_by(|(a, first), (b, second)| {
            let name = |at: &usize| self.cluster.members[*at].node_name();
            b.total_cmp(a).then_with(|| name(first).cmp(name(second)))
        });
        *members = ranked.into_iter().map(|(_, at)| at).collect();
    }

    /// Drifted nodes of static pools: each is replaced by one from the bare template.
    fn drift_static(&mut self) {
        for pool in 0..self.cluster.pools.len() {
            let Some(replicas) = self.cluster.pools[pool].replicas else { continue };
            let drifted = self.drifted(|run, at| run.pool_of(at) == Some(pool));
            let count = self.static_count(pool);
            if drifted.is_empty() || count.running + count.pending > replicas {
                continue;
            }
            let limit = self.cluster.pools[pool].limit("nodes").map(|most| most.as_units().max(0));
            let all = count.running + count.pending + count.deleting;
            let room = limit.map_or(u32::MAX, |most| {
                u32::try_from(most).unwrap_or(u32::MAX).saturating_sub(all)
            });
            let room = usize::try_from(room.min(self.allowed(pool, Reason::Drifted)))
                .unwrap_or(usize::MAX);
            for at in drifted.into_iter().take(room) {
                let bare = Fresh {
                    pool,
                    offers: Vec::new(),
                    requests: crate::dialect::karpenter::read::resources::Amounts::default(),
                };
                let outcome = Outcome { fresh: vec![bare], ..Outcome::default() };
                self.start(Reason::Drifted, vec![at], outcome, false);
            }
        }
    }

    /// Drifted nodes of dynamic pools: the idle ones first, then by how long ago they drifted.
    fn drift(&mut self) {
        let dynamic = |run: &Self, at: usize| {
            run.pool_of(at).is_some_and(|pool| !run.cluster.pools[pool].is_static())
        };
        let mut drifted = self.drifted(dynamic);
        drifted.sort_by_key(|at| !self.cluster.is_reschedulable_free(&self.cluster.members[*at]));
        self.one_by_one(Reason::Drifted, &drifted);
    }

    fn drifted(&self, filter: impl Fn(&Self, usize) -> bool) -> Vec<usize> {
        let mut drifted = self.candidates(Reason::Drifted, |run, at| {
            run.marks[at].drifted.is_some() && filter(run, at)
        });
        drifted.sort_by_key(|at| (self.marks[*at].drifted_since, self.cluster.members[*at].name()));
        drifted
    }

    /// One command per node, each with whatever replacements its pods ask for.
    fn one_by_one(&mut self, reason: Reason, members: &[usize]) {
        for at in members {
            let node = self.cluster.members[*at].node_name();
            let Some(pool) = self.pool_of(*at) else { continue };
            if self.allowed(pool, reason) == 0 || self.used.contains(node) {
                continue;
            }
            let outcome = self.imagine(&[*at], false);
            if let Some(stranded) = outcome.stranded.first() {
                self.refused.insert(*at, stranded.clone());
            } else {
                self.start(reason, vec![*at], outcome, false);
            }
        }
    }
}

/// What is true of each member now, and why it may not be disrupted.
fn judged(cluster: &Cluster<'_>) -> (Vec<Marks>, Vec<Option<Rejection>>) {
    let members = cluster.members.as_slice();
    parallel::join(
        members.len() >= parallel::READ_MIN,
        || {
            let mut types = catalogue::Memory::default();
            members.iter().map(|member| conditions::marks(cluster, member, &mut types)).collect()
        },
        || members.iter().map(|member| obstacle::rejection(cluster, member)).collect(),
    )
}

fn cost(cluster: &Cluster<'_>, member: &Member<'_>) -> f64 {
    let pods = cluster.pods_of(member).iter().filter(|pod| pod.is_reschedulable());
    1.0 + pods.map(|pod: &Pod<'_>| pod.eviction_cost().max(0.0)).sum::<f64>()
}

/// The claims of a static pool, commands of this run included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StaticCount {
    /// Neither leaving nor about to; replacements too.
    pub(crate) running: u32,
    /// About to be disrupted.
    pub(crate) pending: u32,
    pub(crate) deleting: u32,
}

impl Run<'_, '_> {
    pub(crate) fn static_count(&self, pool: usize) -> StaticCount {
        let mut count = StaticCount { running: 0, pending: 0, deleting: 0 };
        for (at, member) in self.cluster.members.iter().enumerate() {
            if member.pool != Some(pool) {
                continue;
            }
            let forced = || {
                self.commands
                    .iter()
                    .any(|command| command.is_forced && command.members.contains(&at))
            };
            if member.facts.is_deleting
                || self.leaving.contains(&at) && !member.is_in_flight() && forced()
            {
                count.deleting += 1;
            } else if self.leaving.contains(&at) {
                count.pending += 1;
            } else {
                count.running += 1;
            }
        }
        let planned = self.commands.iter().flat_map(|command| &command.replacements);
        let planned = planned.filter(|fresh| fresh.pool == pool).count();
        count.running += u32::try_from(planned).unwrap_or(u32::MAX);
        count
    }
}
