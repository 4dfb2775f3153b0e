//! Which controllers run over given objects: those of their kinds.

use std::collections::BTreeSet;

use convoy_api::karpenter::names::NODE_POOL;
use convoy_api::kinds::{
    DAEMON_SET, DEPLOYMENT, JOB, NAMESPACE, NODE, POD, POD_DISRUPTION_BUDGET, REPLICA_SET,
    STATEFUL_SET,
};
use convoy_api::skyhook::SKYHOOK;
use convoy_api::{GroupKind, Object, ObjectKey};
use convoy_plan::dialect::apps::{Deployments, ReplicaSets};
use convoy_plan::dialect::fleet;
use convoy_plan::dialect::karpenter::Operator;
use convoy_plan::dialect::ocm;
use convoy_plan::dialect::skyhook::Skyhook;
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, PodDisruptionBudgets, STATEFUL_SETS};
use convoy_plan::{DIALECTS, Dialect, World};

use super::ForecastError;
use super::scope::placed;

const SECRET: GroupKind = GroupKind::new("", "Secret");

static SKYHOOKS: Skyhook = Skyhook::new();
static POOLS: Operator = Operator::new();
static FLEET_HUB: fleet::Hub = fleet::Hub { options: fleet::Options::new() };
static OCM_HUB: ocm::Hub = ocm::Hub { parts: ocm::HubControllers::ALL };

/// The kinds of workloads that people call rollouts. On a hub they are what is placed.
const WORKLOADS: [GroupKind; 3] = [DEPLOYMENT, DAEMON_SET, STATEFUL_SET];
/// The other kinds of one cluster that a forecast tells about.
const ROLLOUTS: [GroupKind; 2] = [SKYHOOK, NODE_POOL];

/// The controllers of workloads by the kinds that need them, in the order in which they run.
static OF_WORKLOADS: [(&[GroupKind], &dyn Dialect); 6] = [
    (&[DEPLOYMENT], &Deployments),
    (&[DEPLOYMENT, REPLICA_SET], &ReplicaSets),
    (&[DAEMON_SET], &DAEMON_SETS),
    (&[STATEFUL_SET], &STATEFUL_SETS),
    (&[JOB], &JOBS),
    (&[POD_DISRUPTION_BUDGET], &PodDisruptionBudgets),
];

/// The controllers of nodes.
static OF_NODES: [(&[GroupKind], &dyn Dialect); 2] =
    [(&[SKYHOOK], &SKYHOOKS), (&[NODE_POOL], &POOLS)];

/// The controllers of workloads, for a cluster of which nobody knows what it will have.
pub(super) fn of_workloads() -> Vec<&'static dyn Dialect> {
    OF_WORKLOADS.iter().map(|(_, dialect)| *dialect).collect()
}

/// The kinds of which a forecast needs the objects, for any rollout.
pub fn recorded_kinds() -> BTreeSet<GroupKind> {
    let of_clusters = OF_WORKLOADS.iter().chain(&OF_NODES).map(|(_, dialect)| *dialect);
    let all = of_clusters.chain([&FLEET_HUB as &dyn Dialect, &OCM_HUB]);
    let watches = all.flat_map(Dialect::watches);
    let mut kinds: BTreeSet<GroupKind> = watches.map(|watch| watch.kind.clone()).collect();
    kinds.extend([NODE, POD, NAMESPACE]);
    kinds.remove(&SECRET);
    kinds
}

/// What runs in the home cluster, and for what.
pub(super) struct Home {
    pub(super) dialects: Vec<&'static dyn Dialect>,
    /// The rollouts that the forecast is about.
    pub(super) rollouts: Vec<ObjectKey>,
    /// Whether it is the hub of member clusters.
    pub(super) is_hub: bool,
}

/// The controllers that run, and the rollouts that the forecast is about.
pub(super) fn of(given: &World, applied: &World) -> Result<Home, ForecastError> {
    let all = || given.iter().chain(applied.iter());
    let has = |kinds: &[GroupKind]| all().any(|object| kinds.contains(object.kind()));
    let is_fleet = all().any(|object| is_of_fleet(object.kind()));
    let is_ocm = all().any(|object| is_of_ocm(object.kind()));
    let is_hub = is_fleet || is_ocm;
    let runs_workloads = !is_hub || has(&[NODE]);
    let needed = OF_WORKLOADS.iter().filter(|_| runs_workloads).chain(&OF_NODES);
    let mut dialects: Vec<&'static dyn Dialect> =
        needed.filter(|(kinds, _)| has(kinds)).map(|(_, dialect)| *dialect).collect();
    if is_fleet {
        dialects.push(&FLEET_HUB);
    }
    if is_ocm {
        dialects.push(&OCM_HUB);
    }
    let is_rollout = |object: &&Object| {
        let kind = object.kind();
        ROLLOUTS.contains(kind)
            || runs_workloads && WORKLOADS.contains(kind)
            || is_of_fleet(kind)
            || is_of_ocm(kind)
    };
    let mut rollouts: Vec<ObjectKey> = all().filter(is_rollout).map(placed).collect();
    rollouts.sort();
    rollouts.dedup();
    if rollouts.is_empty() {
        return Err(ForecastError::NoRollouts { objects: all().count() });
    }
    Ok(Home { dialects, rollouts, is_hub })
}

/// Whether a kind is a rollout of KubeFleet.
pub(super) fn is_of_fleet(kind: &GroupKind) -> bool {
    is_of("fleet", kind)
}

/// Whether a kind is a rollout of Open Cluster Management.
pub(super) fn is_of_ocm(kind: &GroupKind) -> bool {
    is_of("ocm", kind)
}

fn is_of(dialect: &str, kind: &GroupKind) -> bool {
    let named = DIALECTS.iter().filter(|known| known.name() == dialect);
    named.flat_map(|known| known.rollout_kinds()).any(|named| named.kind == *kind)
}
