//! Where pods would go if some nodes were gone: first onto nodes that stay, then onto new ones.
//! Nothing here decides whether that is worth it.

mod inventory;
mod labels;
pub(crate) mod min_values;
mod offer;
mod overhead;
mod replacement;
mod scheduled;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use smol_str::SmolStr;

pub(crate) use inventory::Inventory;
pub(crate) use labels::{PoolLabels, claim_labels};
pub(crate) use offer::Offer;
pub(crate) use replacement::Replacement;

use crate::dialect::karpenter::names::label;
use crate::dialect::karpenter::read::pod_requirements::PodRequirements;
use crate::resources::Amounts;
use inventory::Left;
use scheduled::{NodeLabels, ScheduledPod};

/// Where pods would go.
#[derive(Clone, Debug, Default)]
pub(crate) struct SimulationResult<'w> {
    /// Pods that have to move and cannot, with the reason.
    pub(crate) stranded: Vec<String>,
    /// Existing nodes that pods would go to.
    pub(crate) targets: BTreeMap<SmolStr, Arrival>,
    /// Nodes that would be made.
    pub(crate) replacements: Vec<Replacement<'w>>,
}

/// Where the pods come from that would go to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arrival {
    /// They wait for a node.
    Pending,
    /// At least one of them is on a node that goes.
    Moving,
}

/// The nodes whose removal is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removal<'q> {
    /// Members that would be disrupted.
    pub(crate) candidates: &'q [usize],
    /// Members on their way out already.
    pub(crate) leaving: &'q BTreeSet<usize>,
    /// Whether it is asked to save money: then nodes that pods have come to lately are left
    /// alone too.
    pub(crate) is_consolidation: bool,
}

/// Where a pod that needs a node comes from. Of pods of one size those come first that need it
/// anyway, so that nodes that are on their way to them are not given to a candidate's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Leaving,
    Pending,
    Candidate,
}

/// A pod that needs a node.
struct MovingPod<'w> {
    origin: Origin,
    /// Where it stands among all pods.
    place: usize,
    needs: Rc<PodRequirements<'w>>,
}

/// Simulates the removal of the candidates.
pub(crate) fn simulate<'w>(
    inventory: &Inventory<'_, 'w>,
    removal: Removal<'_>,
) -> SimulationResult<'w> {
    let mut moving = pods_to_move(inventory, removal);
    if moving.is_empty() {
        return SimulationResult::default();
    }
    // Large pods first; their places make the order total.
    moving.sort_by_key(|pod| {
        let Amounts { cpu, memory, .. } = &pod.needs.amounts;
        (Reverse((*cpu, *memory)), pod.origin, pod.place)
    });
    let gone: BTreeSet<usize> = removal.candidates.iter().chain(removal.leaving).copied().collect();
    let mut state = Simulation::new(inventory, &gone, &moving);
    for MovingPod { origin, needs, .. } in &moving {
        state.schedule(*origin, needs, removal.is_consolidation);
    }
    state.finished()
}

/// The pods that need a node: those that wait for one, and those of nodes that go.
fn pods_to_move<'w>(inventory: &Inventory<'_, 'w>, removal: Removal<'_>) -> Vec<MovingPod<'w>> {
    let cluster = inventory.cluster;
    let moving = |origin: Origin, place: usize, needs| MovingPod { origin, place, needs };
    let pending = cluster.pending.iter();
    let pending =
        pending.map(|pod| moving(Origin::Pending, pod.place, inventory.requirements(pod)));
    let on = |members: Vec<usize>, origin: Origin| {
        members.into_iter().flat_map(move |member| {
            let pods = cluster.pods_of(&cluster.members[member]).iter();
            pods.map(move |pod| (origin, pod))
        })
    };
    let leaving = on(removal.leaving.iter().copied().collect(), Origin::Leaving);
    let candidates = on(removal.candidates.to_vec(), Origin::Candidate);
    let bound = candidates.chain(leaving).filter_map(|(origin, pod)| {
        Some(moving(origin, pod.place, inventory.requirements_of_movable(pod)?))
    });
    pending.chain(bound).collect()
}

/// A simulation under way.
struct Simulation<'g, 'c, 'w> {
    inventory: &'g Inventory<'c, 'w>,
    /// What is left of nodes that something was put onto; of the others, what the inventory has.
    changed: BTreeMap<usize, Left<'w>>,
    /// The existing nodes that pods would go to.
    targets: BTreeMap<usize, Arrival>,
    /// What is left at most of any node in blocks that got pods.
    filled: BTreeMap<usize, Amounts>,
    /// Blocks that got pods since their entry in `filled`, if they have one.
    touched: BTreeSet<usize>,
    /// By shape of the pods, the first node that may take another one. Nodes only fill up here, so
    /// that one that did not take a pod does not take the next of its kind.
    first_open: BTreeMap<u64, usize>,
    /// By shape of the pods, the first new node that may take another one.
    first_new: BTreeMap<u64, usize>,
    gone: &'g BTreeSet<usize>,
    /// Where pods are, if any of them cares about topology.
    scheduled: Vec<ScheduledPod<'w>>,
    result: SimulationResult<'w>,
}

impl<'g, 'c, 'w> Simulation<'g, 'c, 'w> {
    fn new(
        inventory: &'g Inventory<'c, 'w>,
        gone: &'g BTreeSet<usize>,
        moving: &[MovingPod<'w>],
    ) -> Self {
        let cares = moving.iter().any(|pod| !pod.needs.topology.is_empty());
        let scheduled =
            if cares || inventory.has_topology { inventory.scheduled(gone) } else { Vec::new() };
        Self {
            inventory,
            changed: BTreeMap::new(),
            targets: BTreeMap::new(),
            filled: BTreeMap::new(),
            touched: BTreeSet::new(),
            first_open: BTreeMap::new(),
            first_new: BTreeMap::new(),
            gone,
            scheduled,
            result: SimulationResult::default(),
        }
    }

    fn finished(mut self) -> SimulationResult<'w> {
        for (at, arrival) in self.targets {
            let name = self.inventory.nodes[at].name.clone();
            let known = self.result.targets.entry(name).or_insert(arrival);
            *known = arrival.max(*known);
        }
        self.result
    }

    /// What is left of a node.
    fn left(&self, at: usize) -> &Left<'w> {
        self.changed.get(&at).unwrap_or(&self.inventory.nodes[at].left)
    }

    /// Finds a node for a pod. Its preferences count until there is no node with them.
    fn schedule(&mut self, origin: Origin, needs: &PodRequirements<'w>, is_consolidation: bool) {
        if self.place(origin, needs, is_consolidation) {
            return;
        }
        let mut relaxed = needs.clone();
        while relaxed.relax() {
            if self.place(origin, &relaxed, is_consolidation) {
                return;
            }
        }
        if origin != Origin::Pending {
            let object = needs.object;
            self.result.stranded.push(format!(
                "pod {}/{} fits on no other node, and no pool could make one for it",
                object.namespace(),
                object.name()
            ));
        }
    }

    fn place(
        &mut self,
        origin: Origin,
        needs: &PodRequirements<'w>,
        is_consolidation: bool,
    ) -> bool {
        let avoid_busy = is_consolidation && origin == Origin::Candidate;
        if let Some(at) = self.find(needs, avoid_busy) {
            self.join(origin, needs, at);
            return true;
        }
        self.join_replacement(needs) || self.add_replacement(needs)
    }

    /// The first node that takes a pod.
    fn find(&mut self, needs: &PodRequirements<'w>, avoid_busy: bool) -> Option<usize> {
        let shape = needs.shape.filter(|_| !avoid_busy && self.scheduled.is_empty());
        let first = shape.and_then(|shape| self.first_open.get(&shape).copied()).unwrap_or(0);
        let mut found = None;
        for block in self.inventory.blocks_from(first) {
            let known = self.filled.get(&block);
            if !needs.amounts.fit_into(known.unwrap_or_else(|| self.inventory.room_in(block))) {
                continue;
            }
            let mut nodes = self.inventory.nodes_of(block).filter(|at| *at >= first);
            found = nodes.find(|at| self.fits(*at, needs, avoid_busy));
            if found.is_some() {
                break;
            }
            self.measure(block);
        }
        if let Some(shape) = shape {
            self.first_open.insert(shape, found.unwrap_or(usize::MAX));
        }
        found
    }

    fn fits(&self, at: usize, needs: &PodRequirements<'w>, avoid_busy: bool) -> bool {
        let target = &self.inventory.nodes[at];
        !(avoid_busy && target.is_busy)
            && target.takes(needs, self.left(at), &self.inventory.taints)
            && target.member.is_none_or(|member| !self.gone.contains(&member))
            && self.permits(needs, |key| target.label(key))
    }

    /// Notes what is left in a block that got pods and did not take another one.
    fn measure(&mut self, block: usize) {
        if self.touched.remove(&block) {
            let nodes = self.inventory.nodes_of(block);
            let room = inventory::roomiest(nodes.map(|at| self.left(at)));
            self.filled.insert(block, room);
        }
    }

    fn join(&mut self, origin: Origin, needs: &PodRequirements<'w>, at: usize) {
        let target = &self.inventory.nodes[at];
        self.changed.entry(at).or_insert_with(|| target.left.clone()).take(needs);
        if !target.is_initialized && origin == Origin::Candidate {
            let (object, name) = (needs.object, &target.name);
            self.result.stranded.push(format!(
                "pod {}/{} would depend on node {name}, which is not initialized yet",
                object.namespace(),
                object.name()
            ));
        }
        self.touched.insert(Inventory::block_of(at));
        let arrival = if origin == Origin::Pending { Arrival::Pending } else { Arrival::Moving };
        let known = self.targets.entry(at).or_insert(arrival);
        *known = arrival.max(*known);
        let zone = || target.label(label::ZONE).unwrap_or_default().to_owned();
        self.note_scheduled(needs, || match target.labels {
            Some(node) => NodeLabels::Existing(node),
            None => NodeLabels::New { zone: zone(), host: target.name.to_string() },
        });
    }

    fn join_replacement(&mut self, needs: &PodRequirements<'w>) -> bool {
        let shape = needs.shape.filter(|_| self.scheduled.is_empty());
        let first = shape.and_then(|shape| self.first_new.get(&shape).copied()).unwrap_or(0);
        let count = self.result.replacements.len();
        let mut joined = None;
        for at in first..count {
            let Some(grown) = self.result.replacements[at].with(self.inventory, needs) else {
                continue;
            };
            if let Some((grown, zone)) = self.in_topology(needs, grown, at) {
                self.result.replacements[at] = grown;
                self.note_scheduled(needs, || NodeLabels::New { zone, host: new_host(at) });
                joined = Some(at);
                break;
            }
        }
        if let Some(at) = joined {
            // It may have settled a label for which it did not take others.
            for open in self.first_new.values_mut() {
                *open = at.min(*open);
            }
        }
        if let Some(shape) = shape {
            self.first_new.insert(shape, joined.unwrap_or(count));
        }
        joined.is_some()
    }

    /// A new node of the pool that goes first: by weight, then by name, last first.
    fn add_replacement(&mut self, needs: &PodRequirements<'w>) -> bool {
        let at = self.result.replacements.len();
        for pool in self.inventory.pool_order() {
            let planned = self
                .result
                .replacements
                .iter()
                .filter(|replacement| replacement.pool == pool)
                .count();
            let Some(replacement) = Replacement::new(self.inventory, pool, planned, needs) else {
                continue;
            };
            if let Some((replacement, zone)) = self.in_topology(needs, replacement, at) {
                self.result.replacements.push(replacement);
                self.note_scheduled(needs, || NodeLabels::New { zone, host: new_host(at) });
                return true;
            }
        }
        false
    }

    /// The node narrowed to the first zone in which the pod's topology permits it.
    fn in_topology(
        &self,
        needs: &PodRequirements<'w>,
        replacement: Replacement<'w>,
        at: usize,
    ) -> Option<(Replacement<'w>, String)> {
        let zones = replacement.zones();
        if needs.topology.is_empty() && self.scheduled.is_empty() {
            let zone = zones.first().cloned().unwrap_or_default();
            return Some((replacement, zone));
        }
        let name = new_host(at);
        let zone = zones.into_iter().find(|zone| {
            self.permits(needs, |key| match key {
                label::ZONE => Some(zone.as_str()),
                label::HOSTNAME => Some(name.as_str()),
                _ => None,
            })
        })?;
        let narrowed =
            if needs.topology.is_empty() { replacement } else { replacement.in_zone(&zone) };
        Some((narrowed, zone))
    }

    fn permits<'v>(
        &self,
        needs: &PodRequirements<'w>,
        node: impl Fn(&str) -> Option<&'v str>,
    ) -> bool {
        if needs.topology.is_empty() && self.scheduled.is_empty() {
            return true;
        }
        let domains = |key: &str| self.inventory.domains(key);
        needs.topology.permits(needs.object, node, &self.scheduled, domains)
    }

    fn note_scheduled(
        &mut self,
        needs: &PodRequirements<'w>,
        labels: impl FnOnce() -> NodeLabels<'w>,
    ) {
        let matters =
            self.inventory.has_topology || !self.scheduled.is_empty() || !needs.topology.is_empty();
        if matters {
            let required = || needs.topology.clone().into_required();
            let topology = needs.topology.keeps_others_away().then(required);
            self.scheduled.push(ScheduledPod { pod: needs.object, topology, labels: labels() });
        }
    }
}

/// What a node that does not exist yet is called.
fn new_host(at: usize) -> String {
    format!("new node {at}")
}

/// The nodes that pods waiting for a target will go to.
pub(crate) fn nominated(inventory: &Inventory<'_, '_>) -> BTreeSet<SmolStr> {
    let removal = Removal { candidates: &[], leaving: &BTreeSet::new(), is_consolidation: false };
    simulate(inventory, removal).targets.into_keys().collect()
}
