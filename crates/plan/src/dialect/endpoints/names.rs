//! Names on the wire: labels and annotations.

use convoy_api::well_known::annotation::LAST_APPLIED;
pub(super) use convoy_api::well_known::label::{SERVICE_NAME, SKIP_MIRROR, SLICE_MANAGED_BY, ZONE};

/// What the controller is called.
pub(super) const DIALECT: &str = "endpoints";
/// On Endpoints: who writes them.
pub(super) const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
pub(super) const CONTROLLER: &str = "endpoint-controller";
/// On Endpoints that do not list all addresses.
pub(super) const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// On Endpoints and slices of a Service without an address of its own.
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";
pub(super) const SLICE_CONTROLLER: &str = "endpointslice-controller.k8s.io";
pub(super) const MIRROR_CONTROLLER: &str = "endpointslicemirroring-controller.k8s.io";
/// On Endpoints that are a lock.
pub(super) const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations that are about one object only.
pub(super) const NOT_MIRRORED: [&str; 2] =
    ["endpoints.kubernetes.io/last-change-trigger-time", LAST_APPLIED];
