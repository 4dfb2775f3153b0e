//! Nodes that would be made for pods: which machines would do, and what they cost.

use std::collections::{BTreeMap, BTreeSet};

use convoy_api::Object;
use smol_str::SmolStr;

use super::inventory::Inventory;
use super::labels::{PoolLabels, claim_labels};
use super::min_values;
use super::offer::Offer;
use super::overhead::collide;
use crate::dialect::karpenter::names::{WELL_KNOWN_LABELS, label};
use crate::dialect::karpenter::read::pod_requirements::{PodRequirements, Port};
use crate::dialect::karpenter::read::pool::Pool;
use crate::resources::Amounts;

/// A node that would be made.
#[derive(Clone, Debug)]
pub(crate) struct Replacement<'w> {
    pub(crate) pool: usize,
    /// The machines that would do, in no order that means anything.
    pub(crate) offers: Vec<Offer<'w>>,
    pub(crate) pods: Vec<&'w Object>,
    /// What its pods ask for, and the agents that run on every machine of the pool.
    pub(crate) requests: Amounts,
    /// Ports that these take.
    ports: Vec<Port<'w>>,
    /// The labels that the pool requires.
    pub(crate) labels: PoolLabels,
}

impl<'w> Replacement<'w> {
    /// A node from the bare template of `pool`.
    pub(crate) fn of_template(pool: usize) -> Self {
        Self {
            pool,
            offers: Vec::new(),
            pods: Vec::new(),
            requests: Amounts::default(),
            ports: Vec::new(),
            labels: PoolLabels::default(),
        }
    }

    /// A node of `pool` for one pod, `planned` others being planned already.
    pub(super) fn new(
        inventory: &Inventory<'_, 'w>,
        pool: usize,
        planned: usize,
        needs: &PodRequirements<'w>,
    ) -> Option<Self> {
        let wanted = &inventory.cluster.pools[pool];
        let (used, count) = &inventory.usage[pool];
        let planned = u32::try_from(planned).unwrap_or(u32::MAX);
        let more = wanted
            .limit("nodes")
            .is_none_or(|most| i64::from(count.saturating_add(planned)) < most.as_units());
        let within = |offer: &Offer<'_>| {
            let (cpu, memory) = offer.capacity();
            let cpu_fits = wanted
                .limit("cpu")
                .is_none_or(|most| used.cpu.saturating_add(cpu) <= most.as_millis());
            let memory_fits = wanted
                .limit("memory")
                .is_none_or(|most| used.memory.saturating_add(memory) <= most.as_units());
            cpu_fits && memory_fits
        };
        if !more {
            return None;
        }
        let offers = inventory.offers[pool].iter().filter(|offer| within(offer)).copied().collect();
        let overhead = &inventory.overhead[pool];
        let (requests, ports) = (overhead.amounts.clone(), overhead.ports.clone());
        let labels = PoolLabels::of(wanted);
        Self { pool, offers, pods: Vec::new(), requests, ports, labels }.with(inventory, needs)
    }

    /// The same node with one more pod, if some machine still does.
    pub(super) fn with(
        &self,
        inventory: &Inventory<'_, 'w>,
        needs: &PodRequirements<'w>,
    ) -> Option<Self> {
        let pool = &inventory.cluster.pools[self.pool];
        let is_taken = collide(&self.ports, needs.ports());
        if is_taken || needs.first_intolerable(&inventory.taints[self.pool]).is_some() {
            return None;
        }
        let labels = self.labels.with(pool, needs)?;
        let mut requests = self.requests.clone();
        requests.add(&needs.amounts);
        let mut ports = self.ports.clone();
        ports.extend_from_slice(needs.ports());
        let agents = &inventory.overhead[self.pool];
        let does = |offer: &&Offer<'w>| {
            let label = |key: &str| offer.label_in(pool, &labels, key);
            needs.accept(label) && agents.leave_room(label, &requests, &ports, &offer.room())
        };
        let offers: Vec<Offer<'w>> = self.offers.iter().filter(does).copied().collect();
        let does = !offers.is_empty() && min_values::unmet(pool, &offers).is_none();
        let pods = || self.pods.iter().copied().chain([needs.object]).collect();
        let pool = self.pool;
        does.then(|| Self { pool, offers, pods: pods(), requests, ports, labels })
    }

    pub(super) fn zones(&self) -> Vec<String> {
        let zones: BTreeSet<&str> =
            self.offers.iter().map(|offer| offer.label(label::ZONE).unwrap_or_default()).collect();
        zones.into_iter().map(str::to_owned).collect()
    }

    pub(super) fn in_zone(mut self, zone: &str) -> Self {
        self.offers.retain(|offer| offer.label(label::ZONE).unwrap_or_default() == zone);
        self
    }

    /// The labels and room that the cheapest machine would give.
    pub(crate) fn smallest(&self, pool: &Pool<'_>) -> (BTreeMap<SmolStr, SmolStr>, Amounts) {
        let price = |offer: &Offer<'_>| offer.price().unwrap_or(0.0);
        let cheapest = self.offers.iter().min_by(|a, b| price(a).total_cmp(&price(b)));
        let Some(offer) = cheapest else { return Default::default() };
        let of_machine = WELL_KNOWN_LABELS
            .iter()
            .filter_map(|key| Some((SmolStr::new(key), SmolStr::new(offer.label(key)?))));
        let mut labels = claim_labels(pool, &self.labels);
        labels.extend(of_machine);
        (labels, offer.room())
    }
}
