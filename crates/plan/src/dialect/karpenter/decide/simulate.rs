//! Where pods would go if some nodes were gone: first onto nodes that stay, then onto new ones.
//! Nothing here decides whether that is worth it.

mod base;
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

use convoy_api::Object;
use smol_str::SmolStr;

pub(crate) use inventory::Inventory;
pub(crate) use labels::{PoolLabels, claim_labels};
pub(crate) use offer::Offer;
pub(crate) use replacement::Replacement;

use super::score::Score;
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
    /// Pods without a node that get none.
    pub(crate) hopeless: Vec<&'w Object>,
    /// How pools with the policy Balanced judge it.
    pub(crate) scores: Vec<Score>,
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

impl MovingPod<'_> {
    fn size(&self) -> (i64, i64) {
        (self.needs.amounts.cpu, self.needs.amounts.memory)
    }
}

/// Simulates the removal of the candidates.
pub(crate) fn simulate<'w>(
    inventory: &Inventory<'_, 'w>,
    removal: Removal<'_>,
) -> SimulationResult<'w> {
    let mut moving = pods_on(inventory, removal.candidates, Origin::Candidate);
    let gone: BTreeSet<usize> = removal.candidates.iter().chain(removal.leaving).copied().collect();
    let mut state = if let Some(progress) = base::progress(inventory, removal, &moving) {
        Simulation { inventory, gone: &gone, scheduled: Vec::new(), progress }
    } else {
        moving.extend(pods_without_node(inventory, removal.leaving));
        Simulation::new(inventory, &gone, &moving)
    };
    state.schedule_all(moving, removal.is_consolidation);
    state.finished()
}

/// The pods that need a node whatever else goes: those that wait for one, and those of nodes
/// that are on their way out.
fn pods_without_node<'w>(
    inventory: &Inventory<'_, 'w>,
    leaving: &BTreeSet<usize>,
) -> Vec<MovingPod<'w>> {
    let mut moving = pods_on(inventory, leaving, Origin::Leaving);
    let pending = inventory.cluster.pending.iter();
    let origin = Origin::Pending;
    moving.extend(pending.map(|pod| {
        let (place, needs) = (pod.place, inventory.requirements(pod));
        MovingPod { origin, place, needs }
    }));
    moving
}

/// The pods of nodes that go.
fn pods_on<'i, 'w>(
    inventory: &Inventory<'_, 'w>,
    members: impl IntoIterator<Item = &'i usize>,
    origin: Origin,
) -> Vec<MovingPod<'w>> {
    let cluster = inventory.cluster;
    let pods = members.into_iter().flat_map(|at| cluster.pods_of(&cluster.members[*at]));
    let moving = pods.filter_map(|pod| {
        let (place, needs) = (pod.place, inventory.requirements_of_movable(pod)?);
        Some(MovingPod { origin, place, needs })
    });
    moving.collect()
}

/// A simulation under way.
struct Simulation<'g, 'c, 'w> {
    inventory: &'g Inventory<'c, 'w>,
    gone: &'g BTreeSet<usize>,
    /// Where pods are, if any of them cares about topology.
    scheduled: Vec<ScheduledPod<'w>>,
    progress: Progress<'w>,
}

/// What a simulation has found so far.
#[derive(Clone, Debug, Default)]
struct Progress<'w> {
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
    result: SimulationResult<'w>,
}

/// The simulation without candidates.
#[derive(Clone, Debug)]
struct Base<'w> {
    leaving: BTreeSet<usize>,
    /// The size of its smallest pod.
    smallest: Option<(i64, i64)>,
    /// Absent where it matters to pods where others are: then that depends on the candidates.
    progress: Option<Progress<'w>>,
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
        Self { inventory, gone, scheduled, progress: Progress::default() }
    }

    /// Finds nodes for pods: large ones first; their places make the order total.
    fn schedule_all(&mut self, mut moving: Vec<MovingPod<'w>>, is_consolidation: bool) {
        moving.sort_by_key(|pod| (Reverse(pod.size()), pod.origin, pod.place));
        for MovingPod { origin, needs, .. } in &moving {
            self.schedule(*origin, needs, is_consolidation);
        }
    }

    fn finished(self) -> SimulationResult<'w> {
        let Progress { targets, mut result, .. } = self.progress;
        for (at, arrival) in targets {
            let name = self.inventory.nodes[at].name.clone();
            let known = result.targets.entry(name).or_insert(arrival);
            *known = arrival.max(*known);
        }
        result
    }

    /// What is left of a node.
    fn left(&self, at: usize) -> &Left<'w> {
        self.progress.changed.get(&at).unwrap_or(&self.inventory.nodes[at].left)
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
        let object = needs.object;
        if origin == Origin::Pending {
            self.progress.result.hopeless.push(object);
        } else {
            self.progress.result.stranded.push(format!(
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
        let first =
            shape.and_then(|shape| self.progress.first_open.get(&shape).copied()).unwrap_or(0);
        let mut found = None;
        for block in self.inventory.blocks_from(first) {
            let known = self.progress.filled.get(&block);
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
            self.progress.first_open.insert(shape, found.unwrap_or(usize::MAX));
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
        if self.progress.touched.remove(&block) {
            let nodes = self.inventory.nodes_of(block);
            let room = inventory::roomiest(nodes.map(|at| self.left(at)));
            self.progress.filled.insert(block, room);
        }
    }

    fn join(&mut self, origin: Origin, needs: &PodRequirements<'w>, at: usize) {
        let target = &self.inventory.nodes[at];
        self.progress.changed.entry(at).or_insert_with(|| target.left.clone()).take(needs);
        if !target.is_initialized && origin == Origin::Candidate {
            let (object, name) = (needs.object, &target.name);
            self.progress.result.stranded.push(format!(
                "pod {}/{} would depend on node {name}, which is not initialized yet",
                object.namespace(),
                object.name()
            ));
        }
        self.progress.touched.insert(Inventory::block_of(at));
        let arrival = if origin == Origin::Pending { Arrival::Pending } else { Arrival::Moving };
        let known = self.progress.targets.entry(at).or_insert(arrival);
        *known = arrival.max(*known);
        let zone = || target.label(label::ZONE).unwrap_or_default().to_owned();
        self.note_scheduled(needs, || match target.labels {
            Some(node) => NodeLabels::Existing(node),
            None => NodeLabels::New { zone: zone(), host: target.name.to_string() },
        });
    }

    fn join_replacement(&mut self, needs: &PodRequirements<'w>) -> bool {
        let shape = needs.shape.filter(|_| self.scheduled.is_empty());
        let first =
            shape.and_then(|shape| self.progress.first_new.get(&shape).copied()).unwrap_or(0);
        let count = self.progress.result.replacements.len();
        let mut joined = None;
        for at in first..count {
            let Some(grown) = self.progress.result.replacements[at].with(self.inventory, needs)
            else {
                continue;
            };
            if let Some((grown, zone)) = self.in_topology(needs, grown, at) {
                self.progress.result.replacements[at] = grown;
                self.note_scheduled(needs, || NodeLabels::New { zone, host: new_host(at) });
                joined = Some(at);
                break;
            }
        }
        if let Some(at) = joined {
            // It may have settled a label for which it did not take others.
            for open in self.progress.first_new.values_mut() {
                *open = at.min(*open);
            }
        }
        if let Some(shape) = shape {
            self.progress.first_new.insert(shape, joined.unwrap_or(count));
        }
        joined.is_some()
    }

    /// A new node of the pool that goes first: by weight, then by name, last first.
    fn add_replacement(&mut self, needs: &PodRequirements<'w>) -> bool {
        let at = self.progress.result.replacements.len();
        for pool in self.inventory.pool_order() {
            let planned = self
                .progress
                .result
                .replacements
                .iter()
                .filter(|replacement| replacement.pool == pool)
                .count();
            let Some(replacement) = Replacement::new(self.inventory, pool, planned, needs) else {
                continue;
            };
            if let Some((replacement, zone)) = self.in_topology(needs, replacement, at) {
                self.progress.result.replacements.push(replacement);
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
