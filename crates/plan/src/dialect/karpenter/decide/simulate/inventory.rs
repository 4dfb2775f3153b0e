//! The nodes there are, with what is left of them: built once, asked many times.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use convoy_api::Object;
use smol_str::SmolStr;

use super::Base;
use super::offer::Offer;
use super::overhead::{self, Overhead, collide};
use super::scheduled::{NodeLabels, ScheduledPod};
use crate::dialect::karpenter::names::label;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::node::{self, is_ephemeral, is_startup, startup_taints};
use crate::dialect::karpenter::read::pod::Pod;
use crate::dialect::karpenter::read::pod_requirements::{PodRequirements, Port};
use crate::dialect::karpenter::read::pool::Pool;
use crate::resources::Amounts;
use crate::taint::Taint;
use crate::topology::TopologyRules;

/// Nodes that are passed over at once if none of them has room. Most nodes of a busy fleet have
/// none, and hundreds of pods look at thousands of nodes.
const BLOCK: usize = 64;

/// The nodes of a cluster, and what its pools could add.
#[derive(Clone, Debug)]
pub(crate) struct Inventory<'c, 'w> {
    pub(crate) cluster: &'c Cluster<'w>,
    /// Initialized nodes first, then by name; planned ones last.
    pub(super) nodes: Vec<SchedulableNode<'w>>,
    /// What is left at most of any node in each block of [`BLOCK`] of them. Pods only make it
    /// less, so that a block without room stays one.
    roomiest: Vec<Amounts>,
    /// The taints of new nodes, by index of the pool.
    pub(super) taints: Vec<Vec<Taint<'c>>>,
    /// What each pool could make, by index of the pool.
    pub(super) offers: Vec<Vec<Offer<'w>>>,
    /// What agents take of new nodes, by index of the pool.
    pub(super) overhead: Vec<Overhead<'w>>,
    /// What pools have in use, and how many claims.
    pub(super) usage: Vec<(Amounts, u32)>,
    /// Whether any pod that stays keeps others away.
    pub(super) has_topology: bool,
    /// What pods need, of those that were asked about: each simulation asks about the same ones.
    /// By the place of the pod.
    requirements: RefCell<BTreeMap<usize, Rc<PodRequirements<'w>>>>,
    /// Whether a budget keeps a pod where it is, likewise.
    blocked: RefCell<BTreeMap<usize, bool>>,
    /// What simulations begin with, as long as the nodes are the same.
    pub(super) base: RefCell<Option<Base<'w>>>,
}

/// A node that pods can go to.
#[derive(Clone, Debug)]
pub(super) struct SchedulableNode<'w> {
    pub(super) name: SmolStr,
    pub(super) member: Option<usize>,
    /// Whose labels it has; absent for a node that is only planned.
    pub(super) labels: Option<&'w Object>,
    planned_labels: BTreeMap<SmolStr, SmolStr>,
    /// The pool of a node that is only planned: it will have the pool's taints.
    planned_by: Option<usize>,
    taints: Vec<Taint<'w>>,
    pub(super) left: Left<'w>,
    pub(super) is_initialized: bool,
    /// Pods came or went lately, so that it is not consolidated yet.
    pub(super) is_busy: bool,
}

/// What is left of a node.
#[derive(Clone, Debug)]
pub(super) struct Left<'w> {
    free: Amounts,
    /// Ports that are taken.
    ports: Vec<Port<'w>>,
}

impl<'w> Left<'w> {
    pub(super) fn take(&mut self, needs: &PodRequirements<'w>) {
        self.free.subtract(&needs.amounts);
        self.ports.extend_from_slice(needs.ports());
    }
}

impl<'c, 'w> Inventory<'c, 'w> {
    /// The machines that a pool could make nodes of.
    pub(crate) fn offers_of(&self, pool: usize) -> &[Offer<'w>] {
        &self.offers[pool]
    }

    pub(crate) fn new(cluster: &'c Cluster<'w>, daemons: &[&'w Object]) -> Self {
        let mut nodes = Vec::new();
        for (at, member) in cluster.members.iter().enumerate() {
            nodes.extend(SchedulableNode::of_member(cluster, at, member));
        }
        for node in cluster.unmanaged.iter().filter(|node| !node.facts.is_deleting) {
            let pods = cluster.pods.get(node.object.name().as_str());
            let (pods, room) = (pods.map_or(&[][..], Vec::as_slice), &node.facts.allocatable);
            nodes.push(SchedulableNode::new(node.object, room, pods));
        }
        nodes.sort_by(|a, b| (!a.is_initialized, &a.name).cmp(&(!b.is_initialized, &b.name)));
        let indices = 0..cluster.pools.len();
        let offers: Vec<Vec<Offer<'w>>> =
            indices.clone().map(|pool| Offer::all(cluster, pool)).collect();
        let agents = overhead::agents(cluster, daemons);
        let overhead = cluster.pools.iter().zip(&offers);
        let overhead =
            overhead.map(|(pool, offers)| Overhead::new(pool, offers, &agents)).collect();
        let usage = indices.map(|pool| usage(cluster, pool)).collect();
        let keeps_away = |pod: &Pod<'_>| pod.is_active() && pod.facts.keeps_others_away;
        let has_topology = cluster.pods.values().flatten().any(keeps_away);
        let roomiest = nodes.chunks(BLOCK).map(|block| roomiest(lefts(block))).collect();
        Self {
            cluster,
            nodes,
            roomiest,
            taints: cluster.pools.iter().map(Pool::taints).collect(),
            offers,
            overhead,
            usage,
            has_topology,
            requirements: RefCell::default(),
            blocked: RefCell::default(),
            base: RefCell::default(),
        }
    }

    /// The blocks of a node and of those after it.
    pub(super) fn blocks_from(&self, at: usize) -> Range<usize> {
        Self::block_of(at)..self.roomiest.len()
    }

    pub(super) fn block_of(at: usize) -> usize {
        at / BLOCK
    }

    /// What is left at most of any node in a block, as long as it got no pods.
    pub(super) fn room_in(&self, block: usize) -> &Amounts {
        &self.roomiest[block]
    }

    pub(super) fn nodes_of(&self, block: usize) -> Range<usize> {
        let start = block * BLOCK;
        start..self.nodes.len().min(start + BLOCK)
    }

    /// What a pod needs.
    pub(super) fn requirements(&self, pod: &Pod<'w>) -> Rc<PodRequirements<'w>> {
        let mut known = self.requirements.borrow_mut();
        let needs = known.entry(pod.place);
        Rc::clone(needs.or_insert_with(|| Rc::new(PodRequirements::of(pod.object))))
    }

    /// What a pod on a node needs elsewhere, if it can go there.
    pub(super) fn requirements_of_movable(&self, pod: &Pod<'w>) -> Option<Rc<PodRequirements<'w>>> {
        let Cluster { now, pod_budgets, .. } = self.cluster;
        let is_blocked = || {
            let mut known = self.blocked.borrow_mut();
            let blocked = known.entry(pod.place);
            *blocked.or_insert_with(|| pod_budgets.is_fully_blocked(pod.object))
        };
        let moves = pod.is_reschedulable() && !pod.is_protected(*now) && !is_blocked();
        moves.then(|| self.requirements(pod))
    }

    /// How many nodes there are to look at.
    pub(crate) fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a node of `pool` that an earlier command asked for, with the labels and room that it
    /// has at least: there, but not initialized.
    pub(crate) fn add_planned(
        &mut self,
        pool: usize,
        name: &str,
        labels: BTreeMap<SmolStr, SmolStr>,
        mut room: Amounts,
    ) {
        self.base.take();
        self.usage[pool].1 += 1;
        room.subtract(&self.overhead[pool].amounts);
        self.nodes.push(SchedulableNode::planned(pool, name, labels, room));
        let start = (self.nodes.len() - 1) / BLOCK * BLOCK;
        self.roomiest.truncate(start / BLOCK);
        self.roomiest.push(roomiest(lefts(&self.nodes[start..])));
    }

    /// Pools that make nodes for pods: the heaviest first, then by name, last first.
    pub(super) fn pool_order(&self) -> Vec<usize> {
        let pools = &self.cluster.pools;
        let mut order: Vec<usize> = (0..pools.len())
            .filter(|at| !pools[*at].is_static() && !pools[*at].object.is_deleting())
            .collect();
        order.sort_by(|a, b| {
            (pools[*b].weight, pools[*b].name()).cmp(&(pools[*a].weight, pools[*a].name()))
        });
        order
    }

    /// Every value of a topology key that there is or could be.
    pub(super) fn domains(&self, key: &str) -> Vec<String> {
        let existing = self.nodes.iter().filter_map(|target| target.label(key));
        let mut domains: BTreeSet<String> = existing.map(str::to_owned).collect();
        if key == label::ZONE {
            let offered = self.offers.iter().flatten().filter_map(|offer| offer.label(key));
            domains.extend(offered.map(str::to_owned));
        }
        domains.into_iter().collect()
    }

    /// The pods that stay where they are while the members in `gone` go.
    pub(super) fn scheduled(&self, gone: &BTreeSet<usize>) -> Vec<ScheduledPod<'w>> {
        let mut all = Vec::new();
        for target in &self.nodes {
            let Some(node) = target.labels else { continue };
            if target.member.is_some_and(|member| gone.contains(&member)) {
                continue;
            }
            let pods = self.cluster.pods.get(target.name.as_str()).into_iter().flatten();
            for pod in pods.filter(|pod| pod.is_active()) {
                let topology = || TopologyRules::required(pod.object.spec());
                let topology = pod.facts.keeps_others_away.then(topology);
                all.push(ScheduledPod {
                    pod: pod.object,
                    topology,
                    labels: NodeLabels::Existing(node),
                });
            }
        }
        all
    }
}

impl<'w> SchedulableNode<'w> {
    fn of_member(cluster: &Cluster<'w>, at: usize, member: &Member<'w>) -> Option<Self> {
        if member.is_leaving() {
            return None;
        }
        let mut target = match member.node {
            Some(node) if node.facts.is_deleting => return None,
            Some(node) if node.facts.is_registered => {
                Self::new(node.object, &node.facts.allocatable, cluster.pods_of(member))
            }
            // Until it is registered, the claim says what the Node will be.
            Some(node) => Self {
                name: node.object.name().clone(),
                ..Self::new(member.claim, &member.facts.allocatable, cluster.pods_of(member))
            },
            None => Self::new(member.claim, &member.facts.allocatable, &[]),
        };
        target.member = Some(at);
        target.is_initialized = member.node.is_some_and(|node| node.facts.is_initialized);
        if !target.is_initialized {
            // What keeps pods away while a node is set up will be gone by then.
            let startup = startup_taints(member.claim);
            target.taints.retain(|it| !is_startup(&startup, it) && !is_ephemeral(it));
        }
        let pool = member.pool.map(|pool| &cluster.pools[pool]).filter(|pool| !pool.is_static());
        let after = pool.and_then(|pool| pool.consolidate_after);
        target.is_busy = after.is_some_and(|after| {
            let until = member.quiet_since().and_then(|since| since.checked_add(after).ok());
            !after.is_zero() && until.is_some_and(|until| until > cluster.now)
        });
        Some(target)
    }

    fn new(object: &'w Object, allocatable: &Amounts, pods: &[Pod<'w>]) -> Self {
        let mut free = allocatable.clone();
        let mut ports = Vec::new();
        for pod in pods.iter().filter(|pod| !pod.facts.is_finished) {
            free.subtract(&pod.facts.amounts);
            if pod.facts.has_ports {
                ports.extend_from_slice(PodRequirements::of(pod.object).ports());
            }
        }
        Self {
            name: object.name().clone(),
            member: None,
            labels: Some(object),
            planned_labels: BTreeMap::new(),
            planned_by: None,
            taints: node::taints(object),
            left: Left { free, ports },
            is_initialized: true,
            is_busy: false,
        }
    }

    fn planned(
        pool: usize,
        name: &str,
        planned_labels: BTreeMap<SmolStr, SmolStr>,
        free: Amounts,
    ) -> Self {
        Self {
            planned_by: Some(pool),
            name: SmolStr::new(name),
            member: None,
            labels: None,
            planned_labels,
            taints: Vec::new(),
            left: Left { free, ports: Vec::new() },
            is_initialized: false,
            is_busy: false,
        }
    }

    /// A machine that has not come up yet has no host name: it will be one of its own.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        let known = match self.labels {
            Some(_) if key == "metadata.name" => Some(self.name.as_str()),
            Some(object) => object.label(key),
            None => self.planned_labels.get(key).map(SmolStr::as_str),
        };
        known.or_else(|| (key == label::HOSTNAME).then_some(self.name.as_str()))
    }

    /// Whether a pod may go here, so much being left and the pools having these taints.
    pub(super) fn takes(
        &self,
        needs: &PodRequirements<'w>,
        left: &Left<'w>,
        of_pools: &[Vec<Taint<'_>>],
    ) -> bool {
        let of_pool = self.planned_by.map_or(&[][..], |pool| &of_pools[pool]);
        needs.amounts.fit_into(&left.free)
            && needs.first_intolerable(&self.taints).is_none()
            && needs.first_intolerable(of_pool).is_none()
            && needs.accept(|key| self.label(key))
            && !collide(&left.ports, needs.ports())
    }
}

/// What is left of each of `nodes`.
fn lefts<'n, 'w>(nodes: &'n [SchedulableNode<'w>]) -> impl Iterator<Item = &'n Left<'w>> {
    nodes.iter().map(|node| &node.left)
}

/// What is left at most of any node.
pub(super) fn roomiest<'n, 'w: 'n>(nodes: impl Iterator<Item = &'n Left<'w>>) -> Amounts {
    nodes.fold(Amounts::default(), |mut most, left| {
        most.raise(&left.free);
        most
    })
}

fn usage(cluster: &Cluster<'_>, pool: usize) -> (Amounts, u32) {
    let members = cluster.members.iter().filter(|member| member.pool == Some(pool));
    members.fold((Amounts::default(), 0), |(mut sum, count), member| {
        sum.add(&member.facts.capacity);
        (sum, count + 1)
    })
}
