//! Evictions: a placement and the cluster that it is to leave.

use convoy_api::Object;

use crate::dialect::fleet::names::{EXECUTED, VALID};
use crate::dialect::fleet::read::placement::text;

/// The placement that an eviction is about.
pub fn placement_name(eviction: &Object) -> &str {
    text(eviction.spec(), "placementName")
}

/// The cluster that the placement is to leave.
pub fn cluster_name(eviction: &Object) -> &str {
    text(eviction.spec(), "clusterName")
}

/// Whether the result is recorded. The spec cannot be changed, so it stays recorded.
pub fn is_final(eviction: &Object) -> bool {
    eviction.condition_status(VALID) == Some("False") || eviction.condition(EXECUTED).is_some()
}
