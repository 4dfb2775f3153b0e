//! The machines that a pool could make nodes of, and what they cost.

use std::collections::BTreeSet;

use convoy_api::Object;
use smol_str::SmolStr;

use super::labels::PoolLabels;
use crate::dialect::karpenter::names::label;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::catalogue::{self, InstanceType, Offering};
use crate::dialect::karpenter::read::pool::Pool;
use crate::resources::Amounts;

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

    /// The same with what the pool adds; `labels` are those that it requires.
    pub(crate) fn label_in<'s>(
        &'s self,
        pool: &'s Pool<'_>,
        labels: &'s PoolLabels,
        key: &str,
    ) -> Option<&'s str> {
        if let Some(value) = self.label(key) {
            return Some(value);
        }
        if key == label::NODE_POOL {
            return Some(pool.object.name());
        }
        pool.template_label(key).or_else(|| labels.get(key))
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

    pub(super) fn room(&self) -> Amounts {
        match self {
            Self::Catalogue(kind, _) => kind.allocatable(),
            Self::Like(claim) => Amounts::allocatable(claim),
        }
    }

    /// What counts against the pool's limits.
    pub(super) fn capacity(&self) -> (i64, i64) {
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
