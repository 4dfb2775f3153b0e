//! What DaemonSets take of the nodes that a pool would make.

use std::collections::BTreeMap;

use convoy_api::Object;

use super::labels::PoolLabels;
use super::offer::Offer;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::pod::{Owner, Pod};
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
    pub(super) fn new(
        pool: &Pool<'_>,
        offers: &[Offer<'w>],
        agents: &[PodRequirements<'w>],
    ) -> Self {
        let mut overhead = Self::default();
        let (taints, labels) = (pool.taints(), PoolLabels::of(pool));
        for needs in agents {
            if needs.first_intolerable(&taints).is_some() {
                continue;
            }
            let own = labels.with(pool, needs);
            let labels = own.as_ref().unwrap_or(&labels);
            let runs =
                |offer: &&Offer<'_>| needs.accept_relaxed(|key| offer.label_in(pool, labels, key));
            match offers.iter().filter(runs).count() {
                0 => {}
                count if count == offers.len() => {
                    overhead.amounts.add(&needs.amounts);
                    overhead.ports.extend_from_slice(needs.ports());
                }
                _ => overhead.some.push(needs.clone()),
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

/// What the pods of DaemonSets need. What they ask for is read from the newest pod that is there:
/// admission may have given it more than the template says, as `LimitRanges` do.
pub(super) fn agents<'w>(
    cluster: &Cluster<'w>,
    daemon_sets: &[&'w Object],
) -> Vec<PodRequirements<'w>> {
    let mut newest: BTreeMap<&str, &Pod<'w>> = BTreeMap::new();
    if !daemon_sets.is_empty() {
        let pods = cluster.pods.values().flatten();
        for pod in pods.filter(|pod| pod.facts.owner == Owner::DaemonSet) {
            let Some(owner) = pod.object.controller() else { continue };
            let known = newest.entry(owner.uid).or_insert(pod);
            if pod.object.created_at() > known.object.created_at() {
                *known = pod;
            }
        }
    }
    let needs = |daemon_set: &&'w Object| {
        let mut needs = PodRequirements::of_template(daemon_set);
        if let Some(pod) = daemon_set.uid().and_then(|uid| newest.get(uid)) {
            needs.amounts = pod.facts.amounts.clone();
        }
        needs
    };
    daemon_sets.iter().map(needs).collect()
}

/// Whether two pods cannot be on one node because of their ports.
pub(super) fn collide(ports: &[Port<'_>], others: &[Port<'_>]) -> bool {
    ports.iter().any(|port| others.iter().any(|other| port.collides(other)))
}
