//! The order in which groups and versions are shown. Clients take the first group that knows a
//! name, so Kubernetes' own come before custom ones.

use std::cmp::Reverse;

use crate::registry::Registry;

/// What groups of custom kinds have.
const CUSTOM_PRIORITY: u32 = 1_000;

/// Higher comes first; those of one priority are in alphabetical order.
pub(crate) fn priority(group: &str) -> u32 {
    match group {
        "apiregistration.k8s.io" => 20_000,
        "" => 18_000,
        "apps" => 17_800,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "autoscaling" => 17_500,
        "batch" => 17_400,
        "certificates.k8s.io" => 17_300,
        "networking.k8s.io" => 17_200,
        "policy" => 17_100,
        "rbac.authorization.k8s.io" => 17_000,
        "storage.k8s.io" => 16_800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16_700,
        "scheduling.k8s.io" => 16_600,
        "coordination.k8s.io" => 16_500,
        "node.k8s.io" => 16_300,
        "discovery.k8s.io" | "resource.k8s.io" => 16_200,
        "flowcontrol.apiserver.k8s.io" => 16_100,
        "storagemigration.k8s.io" => 15_800,
        _ => CUSTOM_PRIORITY,
    }
}

/// Groups with their versions, the most important first.
pub(super) fn groups(registry: &Registry) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = registry.groups().into_iter().collect();
    groups.sort_by_key(|(name, _)| (Reverse(priority(name)), *name));
    groups
}
