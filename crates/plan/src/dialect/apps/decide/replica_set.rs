//! One decision about a ReplicaSet: pods are created or deleted until it has as many as it wants.
//! On a real cluster kube-controller-manager does this; no decision about a Deployment relies
//! on it.
//!
//! Limits, in order of precedence: a template without labels (creates only), then the burst of
//! one step.

use convoy_api::Object;
use jiff::Timestamp;

use crate::dialect::apps::read::replica_set::ReplicaSet;
use crate::gate::{self, Grant, Limit};
use crate::hold::HoldReason;
use crate::pods::active::ActivePod;
use crate::pods::rank;
use crate::snapshot::Snapshot;

/// The most pods that one step creates or deletes.
const BURST: u32 = 500;

/// What is done about the pods of a ReplicaSet.
#[derive(Debug)]
pub(crate) struct ReplicaSetDecision<'o> {
    pub(crate) set: ReplicaSet<'o>,
    /// How many pods are created, of those that are missing.
    pub(crate) creation: Grant,
    /// How many are missing and not created now.
    pub(crate) left: u32,
    /// How many pods are deleted, of those that are too many.
    pub(crate) deletion: Grant,
    pub(crate) deleted: Vec<&'o Object>,
}

/// Decides; the field that cannot be understood otherwise.
pub(crate) fn decide<'o>(
    snapshot: &Snapshot<'o>,
    now: Timestamp,
) -> Result<ReplicaSetDecision<'o>, String> {
    let set = ReplicaSet::read(snapshot, now)?;
    let is_managed = !set.object.is_deleting();
    let (have, want) = (set.active.len(), set.replicas);
    let missing = if is_managed { crate::count(want.saturating_sub(have)) } else { 0 };
    let excess = if is_managed { crate::count(have.saturating_sub(want)) } else { 0 };
    let creation = gate::grant(missing, &creation_limits(&set));
    let deletion = gate::grant(excess, &[Limit::batch(1, BURST)]);
    let going = usize::try_from(deletion.count).unwrap_or(usize::MAX);
    let deleted = match going {
        0 => Vec::new(),
        all if all == have => set.active.iter().map(|pod| pod.object).collect(),
        some => {
            let is_available = |pod: &ActivePod<'_>| set.is_available(pod);
            rank::first(&set.active, some, is_available, snapshot, set.now)
        }
    };
    Ok(ReplicaSetDecision { left: missing - creation.count, set, creation, deletion, deleted })
}

fn creation_limits(set: &ReplicaSet<'_>) -> Vec<Limit> {
    let detail = || "unable to create pods, no labels".to_owned();
    let labels =
        (!set.has_pod_labels()).then(|| Limit::closed(HoldReason::Stalled { detail: detail() }));
    labels.into_iter().chain([Limit::batch(1, BURST)]).collect()
}
