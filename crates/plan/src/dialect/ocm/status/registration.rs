//! What managed clusters, cluster sets and their bindings say about themselves.

use std::borrow::Cow;

use convoy_api::Object;
use convoy_api::object::member::list;
use convoy_api::ocm::names::{MANAGED_CLUSTER, MANAGED_CLUSTER_SET};
use jiff::Timestamp;
use serde_json::Value;

use crate::condition::{self, Condition, truth};
use crate::dialect::ocm::decide::registration::{Heartbeat, Phase, Registration};
use crate::dialect::ocm::names::{CLOCK_SYNCED, CLUSTER_AVAILABLE, DELETING, HUB_ACCEPTED};
use crate::dialect::ocm::read::cluster::Membership;
use crate::dialect::ocm::read::registration::bound_set;
use crate::snapshot::Snapshot;

/// The status of a cluster; none if it reads so already.
pub(crate) fn cluster(
    cluster: &Object,
    registration: &Registration<'_>,
    now: Timestamp,
) -> Option<Value> {
    let accepted = match &registration.phase {
        // Said once its namespace is there, so that whoever waits for it can go on.
        Phase::Accepted { has_namespace: true } => Some(Condition::new(
            HUB_ACCEPTED,
            "True",
            "HubClusterAdminAccepted",
            "Accepted by hub cluster admin",
        )),
        Phase::Denied { .. } => Some(Condition::new(
            HUB_ACCEPTED,
            "False",
            "HubClusterAdminDenied",
            "Denied by hub cluster admin",
        )),
        _ => None,
    };
    let available = registration.heartbeat == Heartbeat::Stopped;
    let available = available && cluster.condition_status(CLUSTER_AVAILABLE) != Some("Unknown");
    let available = available.then(|| {
        let message = "Registration agent stopped updating its lease.";
        let reason = "ManagedClusterLeaseUpdateStopped";
        Condition::new(CLUSTER_AVAILABLE, "Unknown", reason, message)
    });
    let conditions = [accepted, available, clock(registration.heartbeat), leaving(registration)];
    with_conditions(cluster, conditions.into_iter().flatten(), now)
}

/// Whether the agent's clock can be trusted. A Lease that is merely old says nothing about that.
fn clock(heartbeat: Heartbeat) -> Option<Condition<'static>> {
    match heartbeat {
        Heartbeat::Fresh { .. } => Some(Condition::new(
            CLOCK_SYNCED,
            "True",
            "ManagedClusterClockSynced",
            "The clock of the managed cluster is synced with the hub.",
        )),
        Heartbeat::ClockAhead => Some(Condition::new(
            CLOCK_SYNCED,
            "False",
            "ManagedClusterClockOutOfSync",
            "The agent renewed its Lease at an instant that is yet to come on the hub; \
             synchronize both clocks.",
        )),
        Heartbeat::Unwatched | Heartbeat::Missing | Heartbeat::Stopped => None,
    }
}

fn leaving(registration: &Registration<'_>) -> Option<Condition<'static>> {
    let Phase::Leaving(leftovers) = &registration.phase else { return None };
    if leftovers.works == 0 {
        let message = "No cleaned resource in cluster ns.";
        return Some(Condition::new(DELETING, "True", "NoResource", message));
    }
    let message = format!(
        "{} manifestworks remain in the cluster's namespace, {} of them have finalizers",
        leftovers.works, leftovers.held
    );
    Some(Condition::new(DELETING, "False", "ResourceRemaining", message))
}

/// How many clusters a set has. A set that cannot be read says so.
pub(crate) fn set(snapshot: &Snapshot<'_>, now: Timestamp) -> Option<Value> {
    let set = snapshot.rollout();
    let kind = "ClusterSetEmpty";
    let condition = match Membership::read(set) {
        Ok(members) => {
            let clusters = snapshot.of(&MANAGED_CLUSTER).iter();
            let count = clusters.filter(|cluster| members.contains(cluster)).count();
            if count == 0 {
                let message = "No ManagedCluster selected";
                Condition::new(kind, "True", "NoClusterMatched", message)
            } else {
                let message = format!("{count} ManagedClusters selected");
                Condition::new(kind, "False", "ClustersSelected", message)
            }
        }
        Err(error) => Condition::new(kind, "Unknown", "InvalidClusterSelector", error),
    };
    with_conditions(set, [condition], now)
}

/// Whether the set that a binding names exists.
pub(crate) fn binding(snapshot: &Snapshot<'_>, now: Timestamp) -> Option<Value> {
    let binding = snapshot.rollout();
    let is_bound = snapshot.find(&MANAGED_CLUSTER_SET, "", bound_set(binding)).is_some();
    let reason = if is_bound { "ClusterSetBound" } else { "ClusterSetNotFound" };
    let condition = Condition::new("Bound", truth(is_bound), reason, Cow::Borrowed(""));
    with_conditions(binding, [condition], now)
}

/// The status with these conditions; none if it has them.
fn with_conditions<'c>(
    object: &Object,
    wanted: impl IntoIterator<Item = Condition<'c>>,
    now: Timestamp,
) -> Option<Value> {
    let before = list(object.status(), "conditions");
    let mut conditions = before.to_vec();
    for condition in wanted {
        condition::set(&mut conditions, &condition, now);
    }
    (conditions != before).then(|| {
        let mut status = object.status().as_object().cloned().unwrap_or_default();
        status.insert("conditions".into(), Value::Array(conditions));
        Value::Object(status)
    })
}
