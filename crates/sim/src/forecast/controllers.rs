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
use convoy_plan::dialect::karpenter::Operator;
use convoy_plan::dialect::skyhook::Skyhook;
use convoy_plan::dialect::workloads::{DAEMON_SETS, JOBS, PodDisruptionBudgets, STATEFUL_SETS};
use convoy_plan::{DIALECTS, Dialect, World};

use super::ForecastError;

const SECRET: GroupKind = GroupKind::new("", "Secret");

static SKYHOOKS: Skyhook = Skyhook::new();
static POOLS: Operator = Operator::new();

/// The kinds that people call rollouts and that a forecast tells about.
const ROLLOUTS: [GroupKind; 5] = [DEPLOYMENT, DAEMON_SET, STATEFUL_SET, SKYHOOK, NODE_POOL];

/// The controllers by the kinds that need them, in the order in which they run.
static BY_KIND: [(&[GroupKind], &dyn Dialect); 8] = [
    (&[DEPLOYMENT], &Deployments),
    (&[DEPLOYMENT, REPLICA_SET], &ReplicaSets),
    (&[DAEMON_SET], &DAEMON_SETS),
    (&[STATEFUL_SET], &STATEFUL_SETS),
    (&[JOB], &JOBS),
    (&[POD_DISRUPTION_BUDGET], &PodDisruptionBudgets),
    (&[SKYHOOK], &SKYHOOKS),
    (&[NODE_POOL], &POOLS),
];

/// The kinds of which a forecast needs the objects, for any rollout.
pub fn recorded_kinds() -> BTreeSet<GroupKind> {
    let watches = BY_KIND.iter().flat_map(|(_, dialect)| dialect.watches());
    let mut kinds: BTreeSet<GroupKind> = watches.map(|watch| watch.kind.clone()).collect();
    kinds.extend([NODE, POD, NAMESPACE]);
    kinds.remove(&SECRET);
    kinds
}

/// The controllers that run, and the rollouts that the forecast is about.
pub(super) fn of(
    given: &World,
    applied: &World,
) -> Result<(Vec<&'static dyn Dialect>, Vec<ObjectKey>), ForecastError> {
    let all = || given.iter().chain(applied.iter());
    if let Some(object) = all().find(|object| needs_members(object)) {
        return Err(ForecastError::Unsupported { object: object.key().to_string() });
    }
    let has = |kinds: &[GroupKind]| all().any(|object| kinds.contains(object.kind()));
    let needed = BY_KIND.iter().filter(|(kinds, _)| has(kinds));
    let dialects = needed.map(|(_, dialect)| *dialect).collect();
    let mut rollouts: Vec<ObjectKey> = all()
        .filter(|object| ROLLOUTS.contains(object.kind()))
        .map(super::objects::placed)
        .collect();
    rollouts.sort();
    rollouts.dedup();
    if rollouts.is_empty() {
        return Err(ForecastError::NoRollouts { objects: all().count() });
    }
    Ok((dialects, rollouts))
}

/// Whether an object is a rollout to member clusters.
fn needs_members(object: &Object) -> bool {
    let of_members = DIALECTS.iter().filter(|dialect| matches!(dialect.name(), "fleet" | "ocm"));
    of_members.flat_map(|dialect| dialect.rollout_kinds()).any(|named| named.kind == *object.kind())
}
