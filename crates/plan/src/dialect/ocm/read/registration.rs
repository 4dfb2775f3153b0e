//! What registration reads of a managed cluster and of what belongs to it.

use convoy_api::Object;
use convoy_api::object::member::{field, list, text};
use convoy_api::object::meta::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::dialect::ocm::names::{AUTO_UPDATE, CLEANUP_PRIORITY};

/// How many lease durations a cluster may be silent.
const LEASE_DURATIONS: i64 = 5;
/// The lease duration of a cluster that gives none.
const DEFAULT_LEASE_SECS: i64 = 60;

/// Whether the hub takes the cluster.
pub(crate) fn is_accepted(cluster: &Object) -> bool {
    field(cluster.spec(), "hubAcceptsClient").as_bool() == Some(true)
}

/// How long a cluster may go without renewing its Lease.
pub(crate) fn grace(cluster: &Object) -> SignedDuration {
    let secs = field(cluster.spec(), "leaseDurationSeconds").as_i64().filter(|secs| *secs > 0);
    SignedDuration::from_secs(secs.unwrap_or(DEFAULT_LEASE_SECS).saturating_mul(LEASE_DURATIONS))
}

/// When a Lease was renewed last. One that was never renewed counts from its creation.
pub(crate) fn renewed_at(lease: &Object) -> Option<Timestamp> {
    let renewed = timestamp(lease.spec().get("renewTime"));
    renewed.or_else(|| timestamp(lease.metadata().get("creationTimestamp")))
}

/// In which order objects of a cluster's namespace go: those that say nothing sensible first.
pub(crate) fn cleanup_priority(object: &Object) -> u8 {
    let priority = object.annotation(CLEANUP_PRIORITY).and_then(|text| text.parse().ok());
    priority.filter(|priority| *priority <= 100).unwrap_or_default()
}

/// Whether an object waits for somebody before it goes.
pub(crate) fn has_finalizers(object: &Object) -> bool {
    !list(object.metadata(), "finalizers").is_empty()
}

/// The taints of a cluster as they are written.
pub(crate) fn written_taints(cluster: &Object) -> &[Value] {
    list(cluster.spec(), "taints")
}

/// Whether a built-in set may not be made what it should be.
pub(crate) fn is_left_alone(set: &Object) -> bool {
    set.annotation(AUTO_UPDATE) == Some("false")
}

/// The set that a binding names.
pub(crate) fn bound_set(binding: &Object) -> &str {
    text(binding.spec(), "clusterSet")
}

/// Which clusters a set wants, as it is written.
pub(crate) fn written_selector(set: &Object) -> &Value {
    field(set.spec(), "clusterSelector")
}
