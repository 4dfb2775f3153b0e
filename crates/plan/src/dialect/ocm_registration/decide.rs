//! Whether the cluster takes part, whether its Lease is to be renewed, and what it has.

use convoy_api::Object;
use convoy_api::kinds::{LEASE, NODE};
use convoy_api::ocm::names::CLUSTER_CLAIM;
use jiff::Timestamp;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::Options;
use super::names::{CLOCK_SYNCED, CLUSTER_LEASE, HUB_ACCEPTED};
use super::read::resources::resources;
use super::read::{claims, period, renewed_at};
use crate::snapshot::Snapshot;

/// Where a cluster stands, seen from its agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Registration<'w> {
    /// The hub has not accepted it, or does not any more.
    Unaccepted,
    Accepted {
        renewal: Renewal<'w>,
        /// None while the hub does not trust the agent's clock.
        report: Option<Box<Report>>,
    },
}

/// What is to be done about the Lease.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Renewal<'w> {
    /// The hub has not created it yet.
    Missing,
    Due(&'w Object),
    Fresh {
        until: Timestamp,
    },
}

/// What the cluster has and says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) capacity: Map<String, Value>,
    pub(crate) allocatable: Map<String, Value>,
    pub(crate) version: SmolStr,
    pub(crate) claims: Vec<Value>,
}

pub(crate) fn decide<'w>(
    snapshot: &Snapshot<'w>,
    options: &Options,
    now: Timestamp,
) -> Registration<'w> {
    let cluster = snapshot.rollout();
    if cluster.condition_status(HUB_ACCEPTED) != Some("True") {
        return Registration::Unaccepted;
    }
    let is_trusted = cluster.condition_status(CLOCK_SYNCED) != Some("False");
    let report = is_trusted.then(|| {
        let (capacity, allocatable) = resources(snapshot.of(&NODE));
        let claims = claims(snapshot.of(&CLUSTER_CLAIM), options);
        let version = options.kubernetes_version.clone();
        Box::new(Report { capacity, allocatable, version, claims })
    });
    Registration::Accepted { renewal: renewal(snapshot, now), report }
}

fn renewal<'w>(snapshot: &Snapshot<'w>, now: Timestamp) -> Renewal<'w> {
    let cluster = snapshot.rollout();
    let Some(lease) = snapshot.find(&LEASE, cluster.name(), CLUSTER_LEASE) else {
        return Renewal::Missing;
    };
    // An instant that is yet to come was written by a clock that was wrong.
    let renewed = renewed_at(lease).filter(|at| *at <= now);
    match renewed.and_then(|at| at.checked_add(period(cluster)).ok()) {
        Some(until) if now < until => Renewal::Fresh { until },
        _ => Renewal::Due(lease),
    }
}
