//! The disruptions that start now: upstream's disruption loop with time standing still, run until
//! it finds nothing more. Every start counts as down, waits succeed, replacements stay
//! uninitialized, and nodes that pods are sent to are no longer candidates.
//!
//! # Limits, in order of precedence
//!
//! | decision                          | limits                                                    |
//! |-----------------------------------|-----------------------------------------------------------|
//! | disrupt a drifted node of a static pool | [`Disruptions::replica_limits`]: more nodes than `spec.replicas`, `spec.limits.nodes`; then as below |
//! | disrupt a node, per pool and reason | [`Disruptions::limits`]: each budget that applies, or the number of nodes; a claim without a machine |
//! | disrupt an expired node           | none, upstream disrupts it at once ([`methods`])          |
//! | repair a node                     | [`Disruptions::repair`]: more than a fifth of the nodes are unhealthy |
//! | make nodes for waiting pods       | [`Disruptions::provision_limits`]: the pool is not ready, a claim without a machine, replacements under way, a pause; then the burst of a step |
//! | make nodes of a static pool       | [`Disruptions::scaling`]: `spec.limits.nodes`, the burst of a step |
//! | remove nodes that a static pool no longer asks for | none ([`Disruptions::scaling`])          |
//! | give up a claim that does not get on | [`lifecycle`]: the pause after a refusal               |
//! | take away a claim whose Node is being deleted, or carry on with an accepted command | none ([`lifecycle`], [`command`]) |
//!
//! What keeps a single node from being disrupted, whatever the limits, is its
//! [`Disruptions::obstacle`]. The methods (`methods`, `consolidate`) order the candidates, and
//! simulate where the pods of those that the gate admits would go.

pub(crate) mod budgets;
pub(crate) mod command;
pub(crate) mod conditions;
mod consolidate;
pub(crate) mod course;
mod holds;
pub(crate) mod lifecycle;
mod methods;
pub(crate) mod obstacle;
pub(crate) mod provision;
pub(crate) mod registrations;
pub(crate) mod repair;
pub(crate) mod replicas;
pub(crate) mod score;
pub(crate) mod simulate;

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use smol_str::SmolStr;

use super::read::Cluster;
use super::read::catalogue;
use super::read::claim::Member;
use super::read::pod::Pod;
use super::read::reason::Reason;
use crate::gate::{self, Candidate, Limit, Permit};
use crate::hold::{HoldReason, NAMED};
use crate::parallel;
use budgets::Budgets;
use command::Command;
use conditions::Conditions;
pub(crate) use consolidate::BALANCE;
use holds::{Held, Refusal};
pub(crate) use holds::{Rejection, Until};
use obstacle::Obstacle;
use repair::Repairs;
use simulate::{Arrival, Inventory, Removal, SimulationResult, simulate};

/// The loop under way, and afterwards its result.
#[derive(Debug)]
pub(crate) struct Disruptions<'c, 'w> {
    cluster: &'c Cluster<'w>,
    /// Present if there are pods to find nodes for.
    inventory: Option<Inventory<'c, 'w>>,
    /// By index of the pool.
    budgets: Vec<Budgets<'c>>,
    /// By index of the pool: the nodes that are down, by now.
    down: Vec<Down>,
    /// By index of the member; empty for members of pools that are not read.
    pub(crate) conditions: Vec<Conditions>,
    pub(crate) obstacles: Vec<Option<Obstacle>>,
    /// 1, and what evicting its pods costs; by index of the member.
    pub(crate) costs: Vec<f64>,
    /// Members that are being disrupted or deleted, by now.
    pub(crate) leaving: BTreeSet<usize>,
    /// Nodes that pods go to once the commands of this loop are done.
    targets: BTreeMap<SmolStr, Arrival>,
    pub(crate) commands: Vec<Command<'w>>,
    pub(crate) repairs: Repairs,
    /// By index of the member: what the gate told those of the own pool that do not start.
    holds: Vec<Option<Held>>,
    /// Why the simulation spoke against a member that the gate had admitted.
    refused: BTreeMap<usize, Refusal>,
    /// Candidates that the search for savings did not get to.
    unreached: BTreeSet<usize>,
    /// Whether the search for several nodes that can go together was cut short.
    is_cut_short: bool,
}

/// Nodes of a pool that use up its budgets.
#[derive(Clone, Debug, Default)]
struct Down {
    count: u32,
    /// The first few.
    by: Vec<SmolStr>,
}

impl<'c, 'w> Disruptions<'c, 'w> {
    /// The limits on disrupting members of `pool` for `reason`, in order of precedence.
    ///
    /// | | limit                                    | for                     | while full          |
    /// |-|------------------------------------------|-------------------------|---------------------|
    /// |1| more nodes than `spec.replicas`          | drift of static pools   | closed              |
    /// |2| `spec.limits.nodes`                      | drift of static pools   | slots               |
    /// |3| a budget that cannot be evaluated        | every reason            | closed              |
    /// |4| each budget that applies, smallest first | the reasons it covers   | slots, or blackout  |
    /// |5| the number of nodes                      | reasons without budgets | slots               |
    /// |6| a claim without a machine                | every reason            | closed              |
    ///
    /// The last, because nobody knows what room a claim brings before it is launched: pods that
    /// will go to it would be given a second node.
    ///
    /// Forceful expiration has no limits: upstream disrupts such nodes at once. Node repair has its
    /// own ([`Disruptions::repair`]), and so have new nodes ([`Disruptions::provision_limits`]).
    fn limits(&self, pool: usize, reason: Reason) -> Vec<Limit> {
        let mut limits = match reason {
            Reason::Drifted => self.replica_limits(pool),
            _ => Vec::new(),
        };
        limits.extend(self.budget_limits(pool, reason, &self.down[pool]));
        limits.extend(self.cluster.launching().map(|claim| {
            let on = format!("NodeClaim {} to be launched", claim.name());
            Limit::closed(HoldReason::Depends { on })
        }));
        limits
    }

    /// Static pools replace a drifted node by one more node, and so need room for it.
    fn replica_limits(&self, pool: usize) -> Vec<Limit> {
        let Some(replicas) = self.cluster.pools[pool].replicas else { return Vec::new() };
        let count = self.static_count(pool);
        let mut limits = Vec::new();
        if count.kept() > replicas {
            let kept = count.kept();
            let on = format!("the NodePool to scale down from {kept} to {replicas} nodes");
            limits.push(Limit::closed(HoldReason::Depends { on }));
        }
        limits.extend(self.node_limit(pool));
        limits
    }

    /// `spec.limits.nodes`, which claims that are being deleted still count against.
    fn node_limit(&self, pool: usize) -> Option<Limit> {
        let nodes = self.cluster.pools[pool].limit("nodes")?.as_units().max(0);
        let ceiling = u32::try_from(nodes).unwrap_or(u32::MAX);
        let all = self.static_count(pool).all();
        Some(Limit::slots("spec.limits.nodes", all, ceiling, std::iter::empty::<SmolStr>()))
    }

    /// What the budgets of `pool` say about `reason`, given which nodes are down.
    fn budget_limits(&self, pool: usize, reason: Reason, down: &Down) -> Vec<Limit> {
        let budgets = &self.budgets[pool];
        if let Some((at, error)) = budgets.errors().next() {
            let name = self.cluster.pools[pool].name();
            let detail =
                format!("invalid disruption budgets in nodepool {name}, budget {at}: {error}");
            return vec![Limit::closed(HoldReason::NotDisruptable { detail })];
        }
        let slots = |ceiling| {
            Limit::slots(reason.limit_name(), down.count, ceiling, down.by.iter().cloned())
        };
        let applicable = budgets.covering(reason).into_iter();
        let mut limits: Vec<Limit> =
            applicable.map(|it| it.blackout.unwrap_or_else(|| slots(it.ceiling))).collect();
        if limits.is_empty() {
            limits.push(slots(self.cluster.counts[pool].total));
        }
        limits
    }

    /// How many members of the own pool may be disrupted for `reason` before this loop starts any.
    pub(crate) fn allowed(&self, reason: Reason) -> u32 {
        let pool = self.cluster.own;
        let before = Down { count: self.cluster.counts[pool].down, by: Vec::new() };
        let limits = self.budget_limits(pool, reason, &before);
        gate::grant(u32::MAX, &limits).count
    }

    /// The budgets of the own pool.
    pub(crate) fn own_budgets(&self) -> &Budgets<'c> {
        &self.budgets[self.cluster.own]
    }

    /// What keeps a member from being disrupted for `reason`, whatever the limits are.
    fn obstacle(&self, at: usize, reason: Reason) -> Option<HoldReason> {
        let obstacle = self.obstacles[at].as_ref().filter(|_| !self.may_go(at, reason));
        obstacle.map(Obstacle::hold)
    }

    /// What keeps a member from being disrupted in this loop, where its limits leave room.
    fn nomination(&self, at: usize) -> Option<HoldReason> {
        let detail = match self.targets.get(self.cluster.members[at].node_name())? {
            Arrival::Pending => Obstacle::Nominated.text(),
            Arrival::Moving => {
                "pods of a node that is being disrupted will move to this node".to_owned()
            }
        };
        Some(HoldReason::NotDisruptable { detail })
    }

    /// Whether pods go to the member's node once the commands of this loop are done.
    fn is_target(&self, at: usize) -> bool {
        self.targets.contains_key(self.cluster.members[at].node_name())
    }

    /// Whether no obstacle applies for `reason`: drift goes ahead of pods where the claim has a
    /// deadline of its own.
    fn may_go(&self, at: usize, reason: Reason) -> bool {
        let has_deadline = || self.cluster.members[at].facts.grace_period.is_some();
        self.obstacles[at]
            .as_ref()
            .is_none_or(|obstacle| !reason.is_graceful() && obstacle.is_by_pods() && has_deadline())
    }

    /// A member that has a reason to go. If its limits are full, that is what it is told, and
    /// not that pods come to it.
    fn candidate(&self, at: usize, reason: Reason, limits: &[Limit]) -> Candidate<'w> {
        let nomination = || self.nomination(at).filter(|_| !gate::is_full(limits));
        let obstacle = self.obstacle(at, reason).or_else(nomination);
        Candidate { obstacle, ..Candidate::free(self.cluster.members[at].name(), at) }
    }

    /// Asks the gate who of `members`, in order of precedence, may be disrupted for `reason`.
    /// Gives them in that order, with the permit if there are any.
    fn admit(&mut self, reason: Reason, members: &[usize]) -> (Vec<usize>, Option<Permit>) {
        let mut by_pool: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in members {
            if let Some(pool) = self.pool_of(*at) {
                by_pool.entry(pool).or_default().push(*at);
            }
        }
        let (mut admitted, mut permit) = (BTreeSet::new(), None);
        for (pool, members) in by_pool {
            let limits = self.limits(pool, reason);
            let candidate = |at: usize| self.candidate(at, reason, &limits);
            let candidates = members.into_iter().map(candidate).collect();
            permit = permit.or(self.ask(pool, reason, candidates, &limits, &mut admitted));
        }
        (members.iter().copied().filter(|at| admitted.contains(at)).collect(), permit)
    }

    /// Asks the gate about candidates of one pool, and notes what it tells those that wait.
    fn ask(
        &mut self,
        pool: usize,
        reason: Reason,
        candidates: Vec<Candidate<'w>>,
        limits: &[Limit],
        admitted: &mut BTreeSet<usize>,
    ) -> Option<Permit> {
        let admission = gate::admit(candidates, limits);
        admitted.extend(admission.starts.iter().map(|member| member.index));
        let permit = admission.permit();
        if pool == self.cluster.own {
            for (member, hold) in admission.holds {
                self.note(member.index, reason, hold);
            }
        }
        permit
    }

    /// Notes why a member does not start. The first reason to go stands, but for one that has an
    /// obstacle where another finds no room; of one reason the last word counts.
    fn note(&mut self, at: usize, reason: Reason, hold: HoldReason) {
        let is_obstacle = !self.may_go(at, reason);
        let stands = self.holds[at]
            .as_ref()
            .is_some_and(|known| known.reason != reason && (is_obstacle || !known.is_obstacle));
        if !stands {
            self.holds[at] = Some(Held { reason, hold, is_obstacle });
        }
    }
}

impl<'c, 'w> Disruptions<'c, 'w> {
    /// Runs the loop to its end.
    pub(crate) fn new(cluster: &'c Cluster<'w>, daemons: &[&'w Object]) -> Self {
        let has_pods = !cluster.pods.is_empty() || !cluster.pending.is_empty();
        let inventory = has_pods.then(|| Inventory::new(cluster, daemons));
        let (conditions, obstacles) = judged(cluster, &nominated(inventory.as_ref()));
        let leaving = cluster.members.iter().enumerate().filter(|(_, member)| member.is_leaving());
        let pools = cluster.pools.iter().zip(&cluster.counts);
        let mut disruptions = Self {
            cluster,
            inventory,
            budgets: pools.map(|(pool, it)| Budgets::new(pool, it.total, cluster.now)).collect(),
            down: down(cluster),
            conditions,
            obstacles,
            costs: cluster.members.iter().map(|member| cost(cluster, member)).collect(),
            leaving: leaving.map(|(at, _)| at).collect(),
            targets: BTreeMap::new(),
            commands: Vec::new(),
            repairs: Repairs::default(),
            holds: vec![None; cluster.members.len()],
            refused: BTreeMap::new(),
            unreached: BTreeSet::new(),
            is_cut_short: false,
        };
        disruptions.repair();
        disruptions.expire_forcefully();
        disruptions.expire();
        disruptions.empty();
        disruptions.drift_static();
        disruptions.drift();
        disruptions.consolidate();
        disruptions
    }

    /// The members that `filter` gives a reason to go and that are not leaving already.
    fn candidates(&self, filter: impl Fn(&Self, usize) -> bool) -> Vec<usize> {
        let mut leaving = self.leaving.iter().peekable();
        let members = 0..self.cluster.members.len();
        let staying = members.filter(|at| leaving.next_if_eq(&at).is_none());
        staying.filter(|at| filter(self, *at)).collect()
    }

    /// Whether there is a reason for which a member would go if nothing kept it.
    pub(crate) fn has_reason(&self, at: usize) -> bool {
        let conditions = &self.conditions[at];
        conditions.expired
            || conditions.drifted.is_some()
            || conditions.consolidatable && (self.is_empty(at) || self.is_consolidated(at))
    }

    /// Whether it could go for `reason` if budgets and the simulation allowed it.
    pub(crate) fn is_eligible(&self, at: usize, reason: Reason) -> bool {
        let conditions = &self.conditions[at];
        let has_reason = match reason {
            Reason::Expired => conditions.expired,
            Reason::Drifted => conditions.drifted.is_some(),
            Reason::Empty => conditions.consolidatable && self.is_empty(at),
            Reason::Underutilized => conditions.consolidatable && self.is_consolidated(at),
        };
        has_reason && !self.cluster.members[at].is_leaving() && self.may_go(at, reason)
    }

    /// Whether it has no pods that would have to move.
    pub(crate) fn is_empty(&self, at: usize) -> bool {
        self.costs[at] <= 1.0
    }

    fn pool_of(&self, at: usize) -> Option<usize> {
        self.cluster.members[at].pool
    }

    /// Where pods go if members are removed; without pods there is nothing to simulate.
    fn simulate(&self, candidates: &[usize], is_consolidation: bool) -> SimulationResult<'w> {
        let removal = Removal { candidates, leaving: &self.leaving, is_consolidation };
        let inventory = self.inventory.as_ref();
        inventory.map_or_else(SimulationResult::default, |inventory| simulate(inventory, removal))
    }

    /// Whether a member uses up budgets only from its start on.
    fn goes_down(&self, at: usize) -> bool {
        let member = &self.cluster.members[at];
        member.is_counted() && !member.is_down()
    }

    /// Starts a command: its members are down from now on.
    fn start(
        &mut self,
        reason: Reason,
        members: Vec<usize>,
        result: SimulationResult<'w>,
        permit: Permit,
    ) {
        for at in &members {
            let member = &self.cluster.members[*at];
            if let Some(pool) = member.pool.filter(|_| self.goes_down(*at)) {
                self.down[pool].add(member);
            }
            self.leaving.insert(*at);
            self.refused.remove(at);
            self.holds[*at] = None;
        }
        let mut command = Command::new(self.cluster, reason, members, result.replacements, permit);
        command.scores = result.scores;
        for (node, arrival) in result.targets {
            let known = self.targets.entry(node).or_insert(arrival);
            *known = arrival.max(*known);
        }
        if let Some(inventory) = &mut self.inventory {
            let known = command.replacements.iter().enumerate();
            for (at, replacement) in known.filter(|(_, it)| !it.offers.is_empty()) {
                let name = format!("{}-{at}", command.id);
                let pool = &self.cluster.pools[replacement.pool];
                let (labels, room) = replacement.smallest(pool);
                inventory.add_planned(replacement.pool, &name, labels, room);
            }
        }
        self.commands.push(command);
    }

    /// What a member's machine costs per hour; 0 if that is not known.
    fn price(&self, at: usize) -> f64 {
        price(&self.cluster.members[at], &mut catalogue::Lookup::default())
    }

    /// What the machines of the own pool cost per hour, in thousandths of the currency.
    #[expect(clippy::cast_possible_truncation, reason = "far below 2^53")]
    pub(crate) fn cost_in_thousandths(&self) -> i64 {
        let mut types = catalogue::Lookup::default();
        let own = self.cluster.own_members().map(|(_, member)| member);
        let launched = own.filter(|member| !member.facts.provider_id.is_empty());
        let sum: f64 = launched.map(|member| price(member, &mut types)).sum();
        (sum * 1_000.0).round() as i64
    }

    /// By what a node saves for what it disturbs, most first; then by name.
    fn sort_by_savings(&self, members: &mut Vec<usize>) {
        let ratio = |at: usize| self.price(at) / self.costs[at];
        let mut ranked: Vec<(f64, usize)> = members.iter().map(|at| (ratio(*at), *at)).collect();
        ranked.sort_by(|(a, first), (b, second)| {
            let name = |at: &usize| self.cluster.members[*at].node_name();
            b.total_cmp(a).then_with(|| name(first).cmp(name(second)))
        });
        *members = ranked.into_iter().map(|(_, at)| at).collect();
    }
}

impl Down {
    fn add(&mut self, member: &Member<'_>) {
        self.count += 1;
        if self.by.len() < NAMED {
            self.by.push(member.claim.name().clone());
        }
    }
}

fn price<'w>(member: &Member<'w>, types: &mut catalogue::Lookup<'w>) -> f64 {
    let machine = member.machine();
    let kind = machine.instance_type.as_deref().and_then(|name| types.find(name));
    let capacity = machine.capacity_type.as_deref();
    kind.zip(capacity).and_then(|(kind, capacity)| kind.price(capacity)).unwrap_or(0.0)
}

/// The nodes that are down when the loop begins, by index of the pool.
fn down(cluster: &Cluster<'_>) -> Vec<Down> {
    let mut down = vec![Down::default(); cluster.pools.len()];
    for member in cluster.members.iter().filter(|member| member.is_down()) {
        if let Some(of_pool) = member.pool.and_then(|pool| down.get_mut(pool)) {
            of_pool.add(member);
        }
    }
    down
}

/// The nodes that pending pods will go to.
fn nominated(inventory: Option<&Inventory<'_, '_>>) -> BTreeSet<SmolStr> {
    let waited_for = inventory.filter(|inventory| !inventory.cluster.pending.is_empty());
    waited_for.map(simulate::nominated).unwrap_or_default()
}

/// What is true of each member now, and why it may not be disrupted.
fn judged(
    cluster: &Cluster<'_>,
    nominated: &BTreeSet<SmolStr>,
) -> (Vec<Conditions>, Vec<Option<Obstacle>>) {
    let members = cluster.members.as_slice();
    parallel::join(
        members.len() >= parallel::READ_MIN,
        || {
            let mut types = catalogue::Lookup::default();
            members.iter().map(|member| conditions::of(cluster, member, &mut types)).collect()
        },
        || members.iter().map(|member| obstacle::of(cluster, member, nominated)).collect(),
    )
}

fn cost(cluster: &Cluster<'_>, member: &Member<'_>) -> f64 {
    let pods = cluster.pods_of(member).iter().filter(|pod| pod.is_reschedulable());
    1.0 + pods.map(|pod: &Pod<'_>| pod.eviction_cost().max(0.0)).sum::<f64>()
}
