//! Everything a decision about one pool looks at, paired and counted.

pub(crate) mod budget;
pub(crate) mod catalogue;
pub(crate) mod claim;
pub(crate) mod class;
pub(crate) mod gates;
pub(crate) mod hash;
pub(crate) mod lifecycle;
pub(crate) mod node;
pub(crate) mod pod;
pub(crate) mod pod_requirements;
pub(crate) mod pool;
pub(crate) mod reason;
pub(crate) mod requirement;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::dialect::karpenter::names::{self, NODE, POD, POD_DISRUPTION_BUDGET};
use crate::memory::Reading;
use crate::pod_budget::PodBudgets;
use crate::snapshot::Snapshot;
use claim::{ClaimFacts, Member};
use gates::Gates;
use node::{Node, NodeFacts};
use pod::{Pod, PodFacts};
use pool::Pool;

/// The pools, their nodes and the pods on them.
#[derive(Clone, Debug)]
pub(crate) struct Cluster<'w> {
    pub(crate) now: Timestamp,
    pub(crate) gates: Gates,
    /// By name. Without pods pools cannot influence each other, and only one is read.
    pub(crate) pools: Vec<Pool<'w>>,
    /// Index of the pool that is decided about.
    pub(crate) own: usize,
    /// Whether it is the first of all, which speaks for nodes that no pool speaks for.
    pub(crate) is_first: bool,
    /// By name of the claim.
    pub(crate) members: Vec<Member<'w>>,
    /// Nodes without a claim, by name.
    pub(crate) unmanaged: Vec<Node<'w>>,
    /// Pods by the name of their node.
    pub(crate) pods: BTreeMap<&'w str, Vec<Pod<'w>>>,
    /// Pods that the scheduler found no node for.
    pub(crate) pending: Vec<Pod<'w>>,
    pub(crate) pod_budgets: PodBudgets<'w>,
    /// By index of the pool.
    pub(crate) counts: Vec<Count>,
    /// Members whose disruption is under way.
    pub(crate) in_flight: usize,
    /// Index of the first member whose machine is not known yet.
    launching: Option<usize>,
}

/// What the NodeClaims, Nodes and pods say about themselves, in the order of the snapshot.
#[derive(Debug)]
pub(crate) struct Facts {
    claims: Arc<Vec<Reading<ClaimFacts>>>,
    nodes: Arc<Vec<Reading<NodeFacts>>>,
    pods: Arc<Vec<Reading<PodFacts>>>,
}

impl Facts {
    pub(crate) fn read(snapshot: &Snapshot<'_>) -> Self {
        Self {
            claims: snapshot.readings(&names::NODE_CLAIM, ClaimFacts::read),
            nodes: snapshot.readings(&NODE, NodeFacts::read),
            pods: snapshot.readings(&POD, PodFacts::read),
        }
    }

    /// The pods of the snapshot.
    pub(crate) fn pods<'w>(&'w self, snapshot: &Snapshot<'w>) -> impl Iterator<Item = Pod<'w>> {
        let pods = snapshot.of(&POD).iter().zip(self.pods.iter()).enumerate();
        pods.map(|(place, (object, (_, facts)))| Pod { place, object, facts })
    }
}

/// The nodes of a pool, as its budgets count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) total: u32,
    /// Not ready, or leaving; each at most once.
    pub(crate) down: u32,
}

impl<'w> Cluster<'w> {
    pub(crate) fn new(
        snapshot: &Snapshot<'w>,
        facts: &'w Facts,
        gates: Gates,
        now: Timestamp,
    ) -> Self {
        let own = snapshot.rollout();
        let listed = snapshot.of(&names::NODE_POOL);
        let alone = snapshot.of(&POD).is_empty();
        let is_first = listed.first().is_none_or(|first| first.key() >= own.key());
        let mut pools: Vec<Pool<'w>> = if alone {
            Vec::new()
        } else {
            listed.iter().copied().filter(|pool| pool.key() != own.key()).map(Pool::new).collect()
        };
        let at = pools.partition_point(|pool| pool.name() < own.name().as_str());
        pools.insert(at, Pool::new(own));
        for pool in &mut pools {
            pool.image = class::image(pool, snapshot);
        }
        let mut cluster = Self {
            now,
            gates,
            pools,
            own: at,
            is_first,
            members: Vec::new(),
            unmanaged: Vec::new(),
            pods: BTreeMap::new(),
            pending: Vec::new(),
            pod_budgets: PodBudgets::new(snapshot.of(&POD_DISRUPTION_BUDGET).iter().copied()),
            counts: Vec::new(),
            in_flight: 0,
            launching: None,
        };
        let all: Vec<&str> = listed.iter().map(|pool| pool.name().as_str()).collect();
        cluster.pair(snapshot, facts, &all);
        cluster.place(facts.pods(snapshot));
        cluster.count();
        cluster
    }

    pub(crate) fn pool(&self) -> &Pool<'w> {
        &self.pools[self.own]
    }

    pub(crate) fn count_of_own(&self) -> Count {
        self.counts[self.own]
    }

    /// The members of the pool that is decided about, with their indices.
    pub(crate) fn own_members(&self) -> impl Iterator<Item = (usize, &Member<'w>)> {
        let own = Some(self.own);
        self.members.iter().enumerate().filter(move |(_, member)| member.pool == own)
    }

    /// A claim that is waiting for its machine.
    pub(crate) fn launching(&self) -> Option<&Member<'w>> {
        self.launching.map(|at| &self.members[at])
    }

    /// The pods on a member's node.
    pub(crate) fn pods_of(&self, member: &Member<'w>) -> &[Pod<'w>] {
        let pods = member.node.and_then(|node| self.pods.get(node.object.name().as_str()));
        pods.map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_reschedulable_free(&self, member: &Member<'w>) -> bool {
        !self.pods_of(member).iter().any(Pod::is_reschedulable)
    }

    /// Pairs claims and Nodes by provider id. Both lists are mostly in the same order, so that
    /// sorting them is cheap.
    fn pair(&mut self, snapshot: &Snapshot<'w>, facts: &'w Facts, all_pools: &[&'w str]) {
        let claims = snapshot.of(&names::NODE_CLAIM);
        let nodes = snapshot.of(&NODE).iter().zip(facts.nodes.iter());
        let nodes: Vec<Node<'w>> =
            nodes.map(|(object, (_, facts))| Node { object, facts }).collect();
        let mut by_id: Vec<(&str, usize)> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.facts.provider_id.as_str(), at))
            .filter(|(id, _)| !id.is_empty())
            .collect();
        by_id.sort_unstable();
        self.members.reserve(claims.len());
        let mut is_taken = vec![false; nodes.len()];
        let mut hint = 0;
        for (claim, (_, facts)) in claims.iter().copied().zip(facts.claims.iter()) {
            let at = find(&by_id, &facts.provider_id, &mut hint);
            let is_other = at.is_some_and(|at| std::mem::replace(&mut is_taken[at], true));
            let found = at.map(|at| nodes[at]);
            let (node, shared) = if is_other { (None, found) } else { (found, None) };
            if shared.is_some() {
                self.share(facts, shared);
            }
            let registered = node.filter(|node| node.facts.is_registered);
            let named = registered.map_or(facts.pool.as_deref(), |node| node.pool());
            let pool = named.and_then(|name| self.index_of(name));
            let is_orphan = || named.is_none_or(|name| !all_pools.contains(&name));
            if pool.is_some() || self.pools.len() > 1 || is_orphan() {
                self.members.push(Member { claim, node, shared, pool, pool_name: named, facts });
            }
        }
        let nodes = nodes.into_iter().zip(is_taken);
        self.unmanaged = nodes.filter(|(_, is_taken)| !is_taken).map(|(node, _)| node).collect();
    }

    /// Notes that the claims with the machine of `facts` are several.
    fn share(&mut self, facts: &ClaimFacts, node: Option<Node<'w>>) {
        let members = self.members.iter_mut();
        for member in members.filter(|it| it.facts.provider_id == facts.provider_id) {
            member.shared = node;
        }
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        self.pools.binary_search_by(|pool| pool.name().cmp(name)).ok()
    }

    fn place(&mut self, pods: impl Iterator<Item = Pod<'w>>) {
        for pod in pods {
            match pod.node_name() {
                Some(node) => self.pods.entry(node).or_default().push(pod),
                None if pod.is_provisionable() => self.pending.push(pod),
                None => {}
            }
        }
    }

    fn count(&mut self) {
        self.in_flight = self.members.iter().filter(|member| member.is_in_flight()).count();
        self.launching = self.members.iter().position(Member::is_launching);
        self.counts = vec![Count::default(); self.pools.len()];
        for member in self.members.iter().filter(|member| member.is_counted()) {
            if let Some(count) = member.pool.and_then(|pool| self.counts.get_mut(pool)) {
                count.total += 1;
                count.down += u32::from(member.is_down());
            }
        }
    }
}

/// The claim that a snapshot is about, with its Node.
pub(crate) fn member_of<'w>(snapshot: &Snapshot<'w>, facts: &'w Facts) -> Option<Member<'w>> {
    let key = snapshot.rollout().key();
    let mut claims = snapshot.of(&names::NODE_CLAIM).iter().zip(facts.claims.iter());
    let (claim, (_, claim_facts)) = claims.find(|(claim, _)| claim.key() == key)?;
    let mut nodes = snapshot.of(&NODE).iter().zip(facts.nodes.iter());
    let id = &claim_facts.provider_id;
    let is_shared = facts.claims.iter().filter(|(_, it)| it.provider_id == *id).count() > 1;
    let node = nodes.find(|(_, (_, facts))| !id.is_empty() && facts.provider_id == *id);
    let node = node.map(|(object, (_, facts))| Node { object, facts });
    let pool_name = claim_facts.pool.as_deref();
    let shared = node.filter(|_| is_shared);
    Some(Member { claim, node, shared, pool: None, pool_name, facts: claim_facts })
}

/// The Node that a snapshot is about.
pub(crate) fn node_alone<'w>(snapshot: &Snapshot<'w>, facts: &'w Facts) -> Option<Node<'w>> {
    let key = snapshot.rollout().key();
    let mut nodes = snapshot.of(&NODE).iter().zip(facts.nodes.iter());
    let (object, (_, facts)) = nodes.find(|(node, _)| node.key() == key)?;
    Some(Node { object, facts })
}

/// Looks an id up, first where the last one was found.
fn find(by_id: &[(&str, usize)], id: &str, hint: &mut usize) -> Option<usize> {
    if id.is_empty() {
        return None;
    }
    if by_id.get(*hint).is_none_or(|(known, _)| *known != id) {
        *hint = by_id.partition_point(|(known, _)| *known < id);
    }
    let (known, at) = by_id.get(*hint)?;
    let found = (*known == id).then_some(*at);
    *hint += usize::from(found.is_some());
    found
}
