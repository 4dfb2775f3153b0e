//! What the hub does for its managed clusters: who gets a namespace and rights, whose Lease has
//! expired, which taints that means, and what is cleaned up when a cluster leaves.

use convoy_api::Object;
use convoy_api::kinds::{LEASE, NAMESPACE};
use convoy_api::ocm::names::MANIFEST_WORK;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::dialect::ocm::HubControllers;
use crate::dialect::ocm::names::{
    CLUSTER_AVAILABLE, CLUSTER_LEASE, HUB_ACCEPTED, SKIP_CLOCK_CHECK, UNAVAILABLE_TAINT,
    UNREACHABLE_TAINT,
};
use crate::dialect::ocm::read::registration::{
    cleanup_priority, grace, has_finalizers, is_accepted, renewed_at, written_taints,
};
use crate::gate::{self, Candidate, Permit};
use crate::snapshot::Snapshot;
use crate::taint::Taint;

/// Where a cluster stands on the hub.
#[derive(Clone, Debug)]
pub(crate) struct Registration<'w> {
    pub(crate) phase: Phase<'w>,
    pub(crate) heartbeat: Heartbeat,
    /// The taints as they should read; none if they read so.
    pub(crate) taints: Option<Vec<Value>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase<'w> {
    /// Registration is left to others.
    Ignored,
    /// Nobody has accepted it yet.
    Unaccepted,
    /// It was accepted before, and no longer is.
    Denied {
        works: usize,
    },
    Accepted {
        has_namespace: bool,
    },
    /// It is being deleted, and what is left in its namespace with it.
    Leaving(Leftovers<'w>),
}

/// What a leaving cluster has left in its namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Leftovers<'w> {
    pub(crate) works: usize,
    /// How many of them have finalizers.
    pub(crate) held: usize,
    /// Those that go now: the lowest priority, and not being deleted yet.
    pub(crate) now: Vec<&'w Object>,
    /// The gate's leave to delete these.
    pub(crate) permit: Option<Permit>,
}

/// What is known from the Lease of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    /// There is nothing to look at yet.
    Unwatched,
    /// The Lease has to be created.
    Missing,
    Fresh {
        until: Timestamp,
    },
    /// Not renewed for so long that nobody knows how the cluster is.
    Stopped,
    /// Renewed at an instant that is yet to come here.
    ClockAhead,
}

/// Decides about the managed cluster of a snapshot.
pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    parts: HubControllers,
    now: Timestamp,
) -> Registration<'w> {
    let cluster = snapshot.rollout();
    let phase = if parts.registration { phase(snapshot) } else { Phase::Ignored };
    let heartbeat =
        if parts.registration { heartbeat(snapshot, now) } else { Heartbeat::Unwatched };
    let taints = (parts.taints && !cluster.is_deleting()).then(|| taints(cluster)).flatten();
    Registration { phase, heartbeat, taints }
}

fn phase<'w>(snapshot: &Snapshot<'w>) -> Phase<'w> {
    let cluster = snapshot.rollout();
    let works = snapshot.of(&MANIFEST_WORK);
    if cluster.is_deleting() {
        let first = works.iter().map(|work| cleanup_priority(work)).min();
        let is_next =
            |work: &&&Object| Some(cleanup_priority(work)) == first && !work.is_deleting();
        let next: Vec<&Object> = works.iter().filter(is_next).copied().collect();
        // The cluster is given up: but for their own order, nothing limits how many works go.
        let candidates = next.iter().enumerate().map(|(at, work)| Candidate::free(work.name(), at));
        let admission = gate::admit(candidates.collect(), &[]);
        let now = admission.starts.iter().map(|work| next[work.index]).collect();
        let held = works.iter().filter(|work| has_finalizers(work)).count();
        let (works, permit) = (works.len(), admission.permit());
        return Phase::Leaving(Leftovers { works, held, now, permit });
    }
    if is_accepted(cluster) {
        let has_namespace = snapshot.find(&NAMESPACE, "", cluster.name()).is_some();
        Phase::Accepted { has_namespace }
    } else if cluster.condition_status(HUB_ACCEPTED).is_some() {
        Phase::Denied { works: works.len() }
    } else {
        Phase::Unaccepted
    }
}

fn heartbeat(snapshot: &Snapshot<'_>, now: Timestamp) -> Heartbeat {
    let cluster = snapshot.rollout();
    if cluster.condition_status(HUB_ACCEPTED).is_none() {
        return Heartbeat::Unwatched;
    }
    let Some(lease) = snapshot.find(&LEASE, cluster.name(), CLUSTER_LEASE) else {
        let has_namespace = snapshot.find(&NAMESPACE, "", cluster.name()).is_some();
        return match cluster.is_deleting() {
            true => Heartbeat::Stopped,
            false if has_namespace => Heartbeat::Missing,
            false => Heartbeat::Unwatched,
        };
    };
    let grace = grace(cluster);
    let Some(renewed) = renewed_at(lease) else { return Heartbeat::Stopped };
    let skips = cluster.annotation(SKIP_CLOCK_CHECK) == Some("true");
    match renewed.checked_add(grace) {
        Ok(until) if until <= now => Heartbeat::Stopped,
        Ok(_) if renewed.duration_since(now) >= grace && !skips => Heartbeat::ClockAhead,
        Ok(until) => Heartbeat::Fresh { until },
        Err(_) => Heartbeat::ClockAhead,
    }
}

/// The taints that follow from whether the cluster is available.
///
/// | available       | `unreachable` | `unavailable` |
/// |-----------------|---------------|---------------|
/// | unknown, absent | yes           | no            |
/// | False           | no            | yes           |
/// | True            | no            | no            |
fn taints(cluster: &Object) -> Option<Vec<Value>> {
    let wanted = match cluster.condition_status(CLUSTER_AVAILABLE) {
        Some("True") => None,
        Some("False") => Some(UNAVAILABLE_TAINT),
        _ => Some(UNREACHABLE_TAINT),
    };
    let before = written_taints(cluster);
    let is_ours = |taint: &Value| {
        let Taint { key, effect, .. } = Taint::from_value(taint);
        [UNAVAILABLE_TAINT, UNREACHABLE_TAINT].contains(&key) && effect == "NoSelect"
    };
    let stays = |taint: &&Value| !is_ours(taint) || wanted == Some(Taint::from_value(taint).key);
    let mut after: Vec<Value> = before.iter().filter(stays).cloned().collect();
    if let Some(key) = wanted
        && !after.iter().any(is_ours)
    {
        after.push(json!({"key": key, "effect": "NoSelect"}));
    }
    (after != before).then_some(after)
}
