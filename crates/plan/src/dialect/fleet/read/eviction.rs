//! Evictions: a placement and the cluster that it is to leave.

use convoy_api::Object;
use convoy_api::fleet::eviction::PlacementEvictionSpec;

use crate::dialect::fleet::names::{EXECUTED, VALID};

/// What an eviction asks for. One that does not fit its type is refused, and asks for nothing.
pub(crate) fn spec(eviction: &Object) -> PlacementEvictionSpec {
    eviction.spec_view().unwrap_or_else(|_| PlacementEvictionSpec {
        placement_name: String::new(),
        cluster_name: String::new(),
    })
}

/// Whether the result is recorded. The spec cannot be changed, so it stays recorded.
pub(crate) fn is_final(eviction: &Object) -> bool {
    eviction.condition_status(VALID) == Some("False") || eviction.condition(EXECUTED).is_some()
}
