//! What DaemonSets take of the nodes that a pool would make.

use convoy_api::Object;

use super::labels::PoolLabels;
use super::offer::Offer;
use crate::dialect::karpenter::read::pod_requirements::{PodRequirements, Port};
use crate::dialect::karpenter::read::pool::Pool;
use crate::resources::Amounts;

/// The agents on new nodes of one pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Overhead<'w> {
    /// What those ask for that run on every machine of the pool.
    pub(super) amounts: Amounts,
    /// Ports of the node that these take.
    pub(super) ports: Vec<Port<'w>>,
    /// Those that run on some machines only.
    some: Vec<PodRequirements<'w>>,
}

impl<'w> Overhead<'w> {
    pub(super) fn new(pool: &Pool<'_>, offers: &[Offer<'w>], daemons: &[&'w Object]) -> Self {
        let mut overhead = Self::default();
        let (taints, labels) = (pool.taints(), PoolLabels::of(pool));
        for daemon in daemons {
            let needs = PodRequirements::of_template(daemon);
            if needs.first_intolerable(&taints).is_some() {
                continue;
            }
            let own = labels.with(pool, &needs);
            let labels = own.as_ref().unwrap_or(&labels);
            let runs =
                |offer: &&Offer<'_>| needs.accept_relaxed(|key| offer.label_in(pool, labels, key));
            match offers.iter().filter(runs).count() {
                0 => {}
                count if count == offers.len() => {
                    overhead.amounts.add(&needs.amounts);
                    overhead.ports.extend_from_slice(needs.ports());
                }
                _ => overhead.some.push(needs),
            }
        }
        overhead
    }

    /// Whether the agents of a machine with these labels leave `room` for pods that ask for
    /// `requests`, which includes what runs on every machine, and take `ports`.
    pub(super) fn leave_room<'v>(
        &self,
        label: impl Fn(&str) -> Option<&'v str> + Copy,
        requests: &Amounts,
        ports: &[Port<'_>],
        room: &Amounts,
    ) -> bool {
        if self.some.is_empty() {
            return requests.fit_into(room);
        }
        let mut all = requests.clone();
        for agent in self.some.iter().filter(|agent| agent.accept_relaxed(label)) {
            if collide(ports, agent.ports()) {
                return false;
            }
            all.add(&agent.amounts);
        }
        all.fit_into(room)
    }
}

/// Whether two pods cannot be on one node because of their ports.
pub(super) fn collide(ports: &[Port<'_>], others: &[Port<'_>]) -> bool {
    ports.iter().any(|port| others.iter().any(|other| port.collides(other)))
}
