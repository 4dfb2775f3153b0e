//! Which kinds are taken to member clusters, and where their objects live.

use convoy_api::GroupKind;

use crate::built_in_kind::{self, Scope};
use crate::dialect::fleet::names;

/// The scope of a built-in kind or an envelope; none for custom kinds.
pub(crate) fn scope(kind: &GroupKind) -> Option<Scope> {
    if *kind == names::CLUSTER_ENVELOPE {
        return Some(Scope::Cluster);
    }
    if *kind == names::ENVELOPE {
        return Some(Scope::Namespaced);
    }
    built_in_kind::scope(kind)
}

/// Whether objects of this kind may be taken to member clusters at all.
pub(crate) fn is_selectable(kind: &GroupKind) -> bool {
    match (kind.group.as_str(), kind.kind.as_str()) {
        (names::CLUSTER_GROUP | "events.k8s.io" | "coordination.k8s.io" | "metrics.k8s.io", _)
        | ("", "Event" | "Pod" | "Node") => false,
        (names::PLACEMENT_GROUP, _) => *kind == names::CLUSTER_ENVELOPE || *kind == names::ENVELOPE,
        (names::NETWORKING_GROUP, kind) => {
            !matches!(kind, "ServiceImport" | "TrafficManagerProfile" | "TrafficManagerBackend")
        }
        _ => true,
    }
}

/// Namespaces that belong to the fleet or to Kubernetes itself.
pub(crate) fn is_reserved_namespace(name: &str) -> bool {
    name.starts_with("fleet-") || name.starts_with("kube-")
}
