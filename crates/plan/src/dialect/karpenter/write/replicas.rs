//! Static pools: a fixed number of nodes, made and given up as the number says.

use crate::dialect::karpenter::names::NODE_CLAIM;

use super::launch;
use super::{Acts, delete};
use crate::dialect::karpenter::decide::Run;
use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::hash;
use crate::snapshot::Snapshot;
use crate::step::{MemberState, Why};

/// Makes or gives up nodes until there are as many as the pool asks for.
pub(crate) fn scale(
    cluster: &Cluster<'_>,
    snapshot: &Snapshot<'_>,
    run: &Run<'_, '_>,
    acts: &mut Acts,
) {
    let pool = cluster.pool();
    let Some(replicas) = pool.replicas.filter(|_| !pool.object.is_deleting()) else { return };
    let count = run.static_count(cluster.own);
    let kept = count.running.saturating_add(count.pending);
    if kept < replicas {
        let all = kept.saturating_add(count.deleting);
        let limit = pool.limit("nodes").map_or(i64::MAX, |most| most.as_units().max(0));
        let room = u32::try_from(limit.saturating_sub(i64::from(all)).max(0)).unwrap_or(u32::MAX);
        let why = Why::new("ScaleUp", format!("{kept} of {replicas} nodes"));
        for name in free_names(cluster, snapshot, (replicas - kept).min(room)) {
            acts.create.push(launch::create(pool, &name, None, None, why.clone()));
        }
    }
    if count.running > replicas {
        let why = Why::new("ScaleDown", format!("{} of {replicas} nodes", count.running));
        for at in least_missed(cluster, run).into_iter().take((count.running - replicas) as usize) {
            delete(&cluster.members[at], acts, why.clone());
            acts.stands.insert(at, (MemberState::Gone, None));
        }
    }
}

/// Names that no claim has, always the same for the same world.
fn free_names(cluster: &Cluster<'_>, snapshot: &Snapshot<'_>, count: u32) -> Vec<String> {
    let pool = cluster.pool();
    let uid = pool.object.uid().unwrap_or_default();
    let slots = (0_u32..).map(|slot| {
        let print = hash::fingerprint(&format!("{uid}/{}/{slot}", pool.name()));
        format!("{}-{}", pool.name(), &print[..8])
    });
    let free = slots.filter(|name| snapshot.find(&NODE_CLAIM, "", name).is_none());
    free.take(count as usize).collect()
}

/// The running members, those first that are easiest to give up: not launched, idle, without
/// protected pods, with the fewest pods.
fn least_missed(cluster: &Cluster<'_>, run: &Run<'_, '_>) -> Vec<usize> {
    let running = cluster.own_members().filter(|(at, _)| !run.leaving.contains(at));
    let mut members: Vec<usize> = running.map(|(at, _)| at).collect();
    let weight = |at: &usize| {
        let member = &cluster.members[*at];
        let pods = cluster.pods_of(member);
        let is_protected = pods.iter().any(|pod| pod.is_active() && pod.is_protected(cluster.now));
        let is_idle = run.is_empty(*at) && !is_protected;
        (!member.facts.provider_id.is_empty(), !is_idle, is_protected)
    };
    members.sort_by(|a, b| {
        let cost = |at: usize| run.costs[at];
        weight(a)
            .cmp(&weight(b))
            .then(cost(*a).total_cmp(&cost(*b)))
            .then_with(|| cluster.members[*a].name().cmp(cluster.members[*b].name()))
    });
    members
}
