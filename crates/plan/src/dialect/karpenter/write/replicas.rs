//! The claims that pools make for pods, and that static pools make and remove to reach
//! `spec.replicas`.

use super::counts;
use super::launch;
use super::writes::Writes;
use crate::dialect::karpenter::decide::provision::Provision;
use crate::dialect::karpenter::decide::replicas::Scaling;
use crate::dialect::karpenter::names::{NODE_CLAIM, event};
use crate::dialect::karpenter::read::Cluster;
use crate::hash::structure::fingerprint;
use crate::snapshot::Snapshot;
use crate::step::{Action, EventType, MemberState, Why};

/// How many pods are told in one step which node is made for them: a thousand pods that wait are no
/// reason for as many events. Upstream has the same burst.
const NOMINATIONS: usize = 10;

/// Creates or deletes claims of the own pool.
pub(crate) fn scale(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    scaling: &Scaling,
    writes: &mut Writes,
) {
    let Scaling { replicas, count, create, remove } = scaling;
    if let Some(create) = create {
        writes.hold.clone_from(&create.hold);
        let why = Why::new("ScaleUp", format!("{} of {replicas} nodes", count.kept()));
        let names = free_names(cluster, snapshot, create.count);
        for (name, permit) in names.iter().zip(create.permit().into_iter().cycle()) {
            let create = launch::create(cluster.pool(), name, None, None, permit, why.clone());
            push(cluster, create, writes);
        }
    }
    if let Some((members, permit)) = remove {
        let why = Why::new("ScaleDown", format!("{} of {replicas} nodes", count.running));
        for at in members {
            writes.remove(&cluster.members[*at], *permit, why.clone());
            writes.states.insert(*at, (MemberState::Gone, None));
        }
    }
}

/// Creates claims for pods that no node has room for.
pub(crate) fn provision(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    new: &Provision<'_>,
    writes: &mut Writes,
) {
    let why = Why::new("Provisioned", "pods fit on no node that there is or that is coming");
    writes.hold.clone_from(&new.hold);
    writes.hopeless = new.hopeless.iter().map(|pod| pod.key().clone()).collect();
    let Some(permit) = new.permit else { return };
    let names = free_names(cluster, snapshot, crate::count(new.replacements.len()));
    let claims = || names.iter().zip(&new.replacements);
    for (name, replacement) in claims() {
        let (pool, why) = (cluster.pool(), why.clone());
        let create = launch::create(pool, name, Some(replacement), None, permit, why);
        push(cluster, create, writes);
    }
    let pods = claims().flat_map(|(name, node)| node.pods.iter().map(move |pod| (pod, name)));
    for (pod, name) in pods.take(NOMINATIONS) {
        let message = format!("Pod should schedule on: nodeclaim/{name}");
        writes.event(pod.key(), EventType::Normal, event::NOMINATED, message);
    }
}

/// Creates a claim that takes nobody's place.
fn push(cluster: &Cluster<'_>, create: Action, writes: &mut Writes) {
    let count = counts::claim_created(cluster.pool().name(), "provisioned", &create.target);
    writes.counts.push(count);
    writes.create.push(create);
}

/// Names that no claim has, always the same for the same world.
fn free_names(cluster: &Cluster<'_>, snapshot: &Snapshot<'_>, count: u32) -> Vec<String> {
    let pool = cluster.pool();
    let uid = pool.object.uid().unwrap_or_default();
    let slots = (0_u32..).map(|slot| {
        let print = fingerprint(&format!("{uid}/{}/{slot}", pool.name()));
        format!("{}-{}", pool.name(), &print[..8])
    });
    let free = slots.filter(|name| snapshot.find(&NODE_CLAIM, "", name).is_none());
    free.take(count as usize).collect()
}
