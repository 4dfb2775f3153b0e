//! Nodes that would be made for pods: which machines would do, and what they cost.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialect::karpenter::names::{label, node_label};
use convoy_api::Object;
use serde_json::Value;
use smol_str::SmolStr;

use super::Ground;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::catalogue::{self, InstanceType, Offering};
use crate::dialect::karpenter::read::pod_requirements::Needs;
use crate::dialect::karpenter::read::pool::Pool;
use crate::dialect::karpenter::read::resources::Amounts;
use crate::taint::Taint;

/// A node that would be made.
#[derive(Clone, Debug)]
pub(crate) struct Fresh<'w> {
    pub(crate) pool: usize,
    /// The machines that would do, in no order that means anything.
    pub(crate) offers: Vec<Offer<'w>>,
    /// What its pods and agents ask for.
    pub(crate) requests: Amounts,
}

/// One way to make a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offer<'w> {
    Catalogue(&'static InstanceType, Offering),
    /// Of a provider whose types are not known: one like a node that exists.
    Like(&'w Object),
}

impl<'w> Offer<'w> {
    /// Everything that a pool's own requirements leave.
    pub(crate) fn all(cluster: &Cluster<'w>, pool: usize) -> Vec<Self> {
        let wanted = &cluster.pools[pool];
        if wanted.has_catalogue {
            let types = catalogue::all().iter();
            let offers = types.flat_map(|kind| {
                catalogue::offerings().map(|offering| Self::Catalogue(kind, offering))
            });
            return offers.filter(|offer| offer.suits(wanted)).collect();
        }
        let mut seen = BTreeSet::new();
        let members = cluster.members.iter().filter(|member| member.pool == Some(pool));
        let claims = members.map(|member| member.claim);
        claims
            .filter(|claim| {
                seen.insert((claim.label(label::INSTANCE_TYPE), claim.label(label::ZONE)))
            })
            .map(Self::Like)
            .collect()
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        match self {
            Self::Catalogue(kind, offering) => kind.label(*offering, key),
            Self::Like(claim) => claim.label(key),
        }
    }

    /// The same with what the pool adds.
    pub(crate) fn label_in<'s>(&'s self, pool: &'s Pool<'_>, key: &str) -> Option<&'s str> {
        if let Some(value) = self.label(key) {
            return Some(value);
        }
        if key == label::NODE_POOL {
            return Some(pool.object.name());
        }
        let of_template = pool.template().pointer("/metadata/labels").and_then(|map| map.get(key));
        let of_template = of_template.and_then(Value::as_str);
        of_template.or_else(|| pool.requirements.values_of(key).next().map(SmolStr::as_str))
    }

    pub(crate) fn capacity_type(&self) -> Option<&str> {
        self.label(label::CAPACITY_TYPE)
    }

    pub(crate) fn type_name(&self) -> Option<&str> {
        self.label(label::INSTANCE_TYPE)
    }

    /// Absent where the provider's prices are not known.
    pub(crate) fn price(&self) -> Option<f64> {
        match self {
            Self::Catalogue(kind, offering) => kind.price(offering.capacity_type),
            Self::Like(_) => None,
        }
    }

    fn room(&self) -> Amounts {
        match self {
            Self::Catalogue(kind, _) => Amounts::of_type(kind),
            Self::Like(claim) => Amounts::allocatable(claim),
        }
    }

    /// What counts against the pool's limits.
    fn capacity(&self) -> (i64, i64) {
        match self {
            Self::Catalogue(kind, _) => (kind.cpu * 1_000, kind.memory_gib << 30),
            Self::Like(_) => {
                let room = self.room();
                (room.cpu, room.memory)
            }
        }
    }

    fn suits(&self, pool: &Pool<'_>) -> bool {
        let keys: Vec<&SmolStr> = pool.requirements.keys().collect();
        keys.iter().all(|key| match self.label(key) {
            Some(value) => pool.requirements.allow(key, Some(value)),
            // Keys that no machine has are given to the node by the pool.
            None => true,
        })
    }
}

impl<'w> Fresh<'w> {
    /// A node of `pool` for one pod, `planned` others being planned already.
    pub(super) fn new(
        ground: &Ground<'_, 'w>,
        pool: usize,
        planned: usize,
        needs: &Needs<'w>,
    ) -> Option<Self> {
        let wanted = &ground.cluster.pools[pool];
        let (used, count) = &ground.usage[pool];
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
        let offers = ground.offers[pool].iter().filter(|offer| within(offer)).copied().collect();
        let empty = Self { pool, offers, requests: ground.overhead[pool].clone() };
        empty.with(ground, needs)
    }

    /// The same node with one more pod, if some machine still does.
    pub(super) fn with(&self, ground: &Ground<'_, 'w>, needs: &Needs<'w>) -> Option<Self> {
        let pool = &ground.cluster.pools[self.pool];
        let taints = pool.template().pointer("/spec/taints").and_then(Value::as_array);
        let taints: Vec<Taint<'_>> = taints.into_iter().flatten().map(Taint::from_value).collect();
        if needs.first_intolerable(&taints).is_some() {
            return None;
        }
        let mut requests = self.requests.clone();
        requests.add(&needs.amounts);
        let does = |offer: &&Offer<'w>| {
            requests.fit_into(&offer.room()) && needs.accept(|key| offer.label_in(pool, key))
        };
        let offers: Vec<Offer<'w>> = self.offers.iter().filter(does).copied().collect();
        (!offers.is_empty()).then_some(Self { pool: self.pool, offers, requests })
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
    pub(super) fn smallest(&self) -> (BTreeMap<SmolStr, SmolStr>, Amounts) {
        let price = |offer: &Offer<'_>| offer.price().unwrap_or(0.0);
        let cheapest = self.offers.iter().min_by(|a, b| price(a).total_cmp(&price(b)));
        let Some(offer) = cheapest else { return Default::default() };
        let keys = [
            label::INSTANCE_TYPE,
            label::ZONE,
            label::CAPACITY_TYPE,
            node_label::ARCH,
            node_label::OS,
        ];
        let labels = keys
            .iter()
            .filter_map(|key| Some((SmolStr::new(key), SmolStr::new(offer.label(key)?))));
        (labels.collect(), offer.room())
    }
}
