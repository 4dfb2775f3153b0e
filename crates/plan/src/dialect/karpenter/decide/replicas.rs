//! Static pools: how many nodes they have, make and remove to reach `spec.replicas`.

use super::Disruptions;
use crate::gate::{self, Candidate, Grant, Limit, Permit};
use crate::hold::HoldReason;

/// What keeps a static pool, and its drifted nodes, as they are.
pub(super) const STATIC_CAPACITY_OFF: &str =
    "the feature gate StaticCapacity, which is off: static pools are not run";

/// The most nodes that one step creates.
pub(super) const BURST: u32 = 500;

/// The claims of a static pool, commands of this loop included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StaticCount {
    /// Neither leaving nor about to; replacements too.
    pub(crate) running: u32,
    /// About to be disrupted.
    pub(crate) pending: u32,
    pub(crate) deleting: u32,
}

/// What brings a static pool to `spec.replicas`.
#[derive(Clone, Debug)]
pub(crate) struct Scaling {
    pub(crate) replicas: u32,
    pub(crate) count: StaticCount,
    /// How many nodes are created, and what stops the others.
    pub(crate) create: Option<Grant>,
    /// The members that are removed, with the permit.
    pub(crate) remove: Option<(Vec<usize>, Permit)>,
}

impl StaticCount {
    pub(crate) fn kept(self) -> u32 {
        self.running.saturating_add(self.pending)
    }

    pub(crate) fn all(self) -> u32 {
        self.kept().saturating_add(self.deleting)
    }
}

impl Disruptions<'_, '_> {
    /// How the own pool is scaled; absent for pools that follow their pods.
    ///
    /// Nodes are created under `spec.limits.nodes` and [`BURST`]. Nothing limits the removal of nodes that the
    /// pool no longer asks for: those that are missed least go first.
    pub(crate) fn scaling(&self) -> Option<Scaling> {
        let pool = self.cluster.pool();
        let is_run = self.cluster.gates.static_capacity && !pool.object.is_deleting();
        let replicas = pool.replicas.filter(|_| is_run)?;
        let count = self.static_count(self.cluster.own);
        let missing = replicas.saturating_sub(count.kept());
        let create = (missing > 0).then(|| {
            let limit = self.node_limit(self.cluster.own).into_iter();
            let limits: Vec<Limit> = limit.chain([Limit::burst(BURST, 0)]).collect();
            gate::grant(missing, &limits)
        });
        let surplus = count.running.saturating_sub(replicas) as usize;
        let unwanted = self.least_missed().into_iter().take(surplus);
        let unwanted = unwanted.map(|at| Candidate::free(self.cluster.members[at].name(), at));
        let admission = gate::admit(unwanted.collect(), &[]);
        let remove = admission
            .permit()
            .map(|permit| (admission.starts.iter().map(|member| member.index).collect(), permit));
        Some(Scaling { replicas, count, create, remove })
    }

    /// What a static pool waits for that nobody runs.
    pub(crate) fn switched_off(&self) -> Option<HoldReason> {
        let is_off = self.cluster.pool().is_static() && !self.cluster.gates.static_capacity;
        is_off.then(|| HoldReason::Depends { on: STATIC_CAPACITY_OFF.to_owned() })
    }

    /// The claims of a static pool.
    pub(super) fn static_count(&self, pool: usize) -> StaticCount {
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
                || member.facts.is_instance_terminating
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
        let planned = planned.filter(|replacement| replacement.pool == pool).count();
        count.running += crate::count(planned);
        count
    }

    /// The running members, those first that are easiest to give up: not launched, idle, without
    /// protected pods, with the fewest pods.
    fn least_missed(&self) -> Vec<usize> {
        let cluster = self.cluster;
        let running = cluster.own_members().filter(|(at, _)| !self.leaving.contains(at));
        let mut members: Vec<usize> = running.map(|(at, _)| at).collect();
        let weight = |at: &usize| {
            let member = &cluster.members[*at];
            let mut pods = cluster.pods_of(member).iter();
            let is_protected = pods.any(|pod| pod.is_active() && pod.is_protected(cluster.now));
            let is_idle = self.is_empty(*at) && !is_protected;
            (!member.facts.provider_id.is_empty(), !is_idle, is_protected)
        };
        members.sort_by(|a, b| {
            let cost = |at: usize| self.costs[at];
            weight(a)
                .cmp(&weight(b))
                .then(cost(*a).total_cmp(&cost(*b)))
                .then_with(|| cluster.members[*a].name().cmp(cluster.members[*b].name()))
        });
        members
    }
}
