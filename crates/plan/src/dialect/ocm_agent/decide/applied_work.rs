//! What becomes of one `AppliedManifestWork`: with its work missing on the hub it is evicted after
//! a grace period, and when it goes, its objects go first.

use convoy_api::Object;
use convoy_api::ocm::names::MANIFEST_WORK;
use jiff::Timestamp;

use super::removal::Removal;
use crate::dialect::ocm_agent::Options;
use crate::dialect::ocm_agent::names::APPLIED_WORK_FINALIZER;
use crate::dialect::ocm_agent::read::kinds::Kinds;
use crate::dialect::ocm_agent::read::recorded::{applied_resources, eviction_start, work_name};
use crate::snapshot::Snapshot;

/// Where an `AppliedManifestWork` stands.
#[derive(Clone, Debug)]
pub(crate) enum AppliedPhase<'w> {
    /// Its work is on the hub, or nothing is ever evicted.
    Managed,
    /// Its work is missing.
    Unmanaged { until: Option<Timestamp> },
    /// It has been missing for too long.
    Evicted,
    /// It is being deleted, and its objects before it.
    Removing(Vec<Removal<'w>>),
    /// Nothing is left of it but its finalizer.
    Removed,
    /// Somebody else keeps it.
    Released,
}

pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    options: &Options,
    now: Timestamp,
) -> AppliedPhase<'w> {
    let applied_work = snapshot.rollout();
    if applied_work.is_deleting() {
        return removal(snapshot, options);
    }
    let Some(grace) = options.eviction_grace() else { return AppliedPhase::Managed };
    let is_of_this_hub = applied_work.name().starts_with(options.hub_hash.as_str());
    let work = MANIFEST_WORK.key(&options.cluster, work_name(applied_work));
    if is_of_this_hub && snapshot.get(&work).is_some() {
        return AppliedPhase::Managed;
    }
    let Some(since) = eviction_start(applied_work) else {
        return AppliedPhase::Unmanaged { until: now.checked_add(grace).ok() };
    };
    match since.checked_add(grace).ok() {
        Some(until) if until <= now => AppliedPhase::Evicted,
        until => AppliedPhase::Unmanaged { until },
    }
}

fn removal<'w>(snapshot: &Snapshot<'w>, options: &Options) -> AppliedPhase<'w> {
    let applied_work: &'w Object = snapshot.rollout();
    if !applied_work.has_finalizer(APPLIED_WORK_FINALIZER) {
        return AppliedPhase::Released;
    }
    let member = &options.cluster;
    let kinds = Kinds::of_snapshot(snapshot, member);
    let removals = applied_resources(applied_work).into_iter().map(|resource| {
        let live = resource.key(&kinds, member).and_then(|key| snapshot.get(&key));
        Removal::of(resource, live, applied_work)
    });
    let removals: Vec<Removal<'w>> = removals.collect();
    if removals.is_empty() { AppliedPhase::Removed } else { AppliedPhase::Removing(removals) }
}
