//! The conditions that make a node a candidate, derived anew from the objects and the instant:
//! whether it may be consolidated, has drifted, or is too old.

use jiff::{SignedDuration, Timestamp};
use smol_str::SmolStr;

use crate::dialect::karpenter::read::Cluster;
use crate::dialect::karpenter::read::catalogue::{self, Lookup};
use crate::dialect::karpenter::read::claim::Member;
use crate::dialect::karpenter::read::pod::Pod;
use crate::dialect::karpenter::read::pool::Pool;

/// The conditions of one claim as they should read now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) consolidatable: bool,
    /// When it becomes consolidatable, if time alone makes it so.
    pub(crate) consolidatable_at: Option<Timestamp>,
    /// The word for how it has drifted.
    pub(crate) drifted: Option<SmolStr>,
    /// Since when, for the order.
    pub(crate) drifted_since: Option<Timestamp>,
    /// Too old, in a pool where that is budgeted.
    pub(crate) expired: bool,
    /// When it is too old.
    pub(crate) expires_at: Option<Timestamp>,
    /// When a pod last came or went, if later than the claim says.
    pub(crate) pod_event: Option<Timestamp>,
}

/// Drift reasons that are always derived here; any other word is the provider's own.
const POOL_DRIFTED: &str = "NodePoolDrifted";
const REQUIREMENTS_DRIFTED: &str = "RequirementsDrifted";
const IMAGE_DRIFTED: &str = "ImageDrifted";
const DERIVED: [&str; 3] = [POOL_DRIFTED, REQUIREMENTS_DRIFTED, IMAGE_DRIFTED];
const NOT_FOUND: &str = "InstanceTypeNotFound";

/// Pod events closer than this to the recorded one are not recorded.
const POD_EVENT_STEP: SignedDuration = SignedDuration::from_secs(10);

/// Types that providers withdraw are looked for only on nodes that are at least this old.
const CATALOGUE_AGE: SignedDuration = SignedDuration::from_hours(1);

pub(crate) fn of<'w>(
    cluster: &Cluster<'w>,
    member: &Member<'w>,
    types: &mut Lookup<'w>,
) -> Conditions {
    let Some(pool) = member.pool.map(|pool| &cluster.pools[pool]) else {
        return Conditions::default();
    };
    let now = cluster.now;
    let mut conditions = Conditions::default();
    consolidation(cluster, pool, member, &mut conditions);
    conditions.drifted = drift(pool, member, types, now);
    if conditions.drifted.is_some() {
        let since = member.facts.drifted.as_ref().and_then(|mark| mark.since);
        conditions.drifted_since = Some(since.unwrap_or(now));
    }
    conditions.expires_at = member.expires_at(pool.expire_after);
    let is_old = conditions.expires_at.is_some_and(|at| at <= now);
    conditions.expired = is_old && pool.is_budgeted_expiration();
    conditions
}

/// Whether pods have left the node alone for long enough.
fn consolidation(
    cluster: &Cluster<'_>,
    pool: &Pool<'_>,
    member: &Member<'_>,
    conditions: &mut Conditions,
) {
    let now = cluster.now;
    let seen = cluster.pods_of(member).iter().filter_map(Pod::last_event).max();
    let waits = pool.consolidate_after.is_some_and(|after| !after.is_zero());
    let recorded = if seen.is_some() || waits { member.quiet_since() } else { None };
    conditions.pod_event = seen.filter(|seen| {
        let is_news = |recorded: Timestamp| seen.duration_since(recorded) >= POD_EVENT_STEP;
        *seen <= now && recorded.is_none_or(is_news)
    });
    let (Some(after), Some(_), false) =
        (pool.consolidate_after, &member.facts.initialized, pool.is_static())
    else {
        return;
    };
    let quiet_since = conditions.pod_event.or(recorded);
    let at = quiet_since.and_then(|since| since.checked_add(after).ok());
    conditions.consolidatable = after.is_zero() || at.is_some_and(|at| at <= now);
    conditions.consolidatable_at = at.filter(|_| !conditions.consolidatable);
}

/// How a claim has drifted from its pool; the first that applies.
fn drift<'w>(
    pool: &Pool<'_>,
    member: &Member<'w>,
    types: &mut Lookup<'w>,
    now: Timestamp,
) -> Option<SmolStr> {
    let facts = &member.facts;
    if !facts.is_launched {
        return None;
    }
    let is_hashed = pool.is_hashed || member.migrates(pool);
    if is_hashed && member.migrated_hash(pool).is_some_and(|hash| *hash != pool.hash) {
        return Some(SmolStr::new_static(POOL_DRIFTED));
    }
    if !pool.requirements.are_met_by(member.claim) {
        return Some(SmolStr::new_static(REQUIREMENTS_DRIFTED));
    }
    let is_grown = || {
        let age = member.created_at().map(|created| now.duration_since(created));
        age.is_some_and(|age| age >= CATALOGUE_AGE)
    };
    if pool.has_catalogue && is_withdrawn(member, types) && is_grown() {
        return Some(SmolStr::new_static(NOT_FOUND));
    }
    if pool.image.is_some_and(|image| facts.image != image) {
        return Some(SmolStr::new_static(IMAGE_DRIFTED));
    }
    let given = facts.drifted.as_ref()?.reason.as_str();
    // Which types another provider has is only known from what it said before.
    let derived = DERIVED.contains(&given) || given == NOT_FOUND && pool.has_catalogue;
    (!derived).then(|| SmolStr::new(given))
}

/// Whether the catalogue no longer has the claim's instance type where the claim is.
fn is_withdrawn<'w>(member: &Member<'w>, types: &mut Lookup<'w>) -> bool {
    let machine = &member.facts.machine;
    let Some(name) = machine.instance_type.as_deref() else { return false };
    let Some(instance_type) = types.find(name) else { return true };
    let zone = machine.zone.as_deref().is_none_or(|zone| catalogue::ZONES.contains(&zone));
    // A reserved machine may go on as one that is paid for by the hour.
    let capacity = match machine.capacity_type.as_deref() {
        Some("reserved") => Some(catalogue::ON_DEMAND),
        other => other,
    };
    !zone || capacity.is_some_and(|capacity| instance_type.price(capacity).is_none())
}
