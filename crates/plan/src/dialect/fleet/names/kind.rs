//! What is known of kinds without asking a server: which have cluster scope, which are never
//! taken to another cluster, and in which order they are applied there.

use convoy_api::GroupKind;
use convoy_api::kinds::NAMESPACE;

use crate::dialect::fleet::names;

/// Where the objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

use Scope::{Cluster, Namespaced};

/// The built-in kinds that can be selected.
pub const BUILT_IN: [(GroupKind, Scope); 38] = [
    (GroupKind::new("", "ConfigMap"), Namespaced),
    (GroupKind::new("", "Endpoints"), Namespaced),
    (GroupKind::new("", "LimitRange"), Namespaced),
    (NAMESPACE, Cluster),
    (GroupKind::new("", "PersistentVolume"), Cluster),
    (GroupKind::new("", "PersistentVolumeClaim"), Namespaced),
    (GroupKind::new("", "PodTemplate"), Namespaced),
    (GroupKind::new("", "ReplicationController"), Namespaced),
    (GroupKind::new("", "ResourceQuota"), Namespaced),
    (GroupKind::new("", "Secret"), Namespaced),
    (GroupKind::new("", "Service"), Namespaced),
    (GroupKind::new("", "ServiceAccount"), Namespaced),
    (GroupKind::new("admissionregistration.k8s.io", "MutatingWebhookConfiguration"), Cluster),
    (GroupKind::new("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"), Cluster),
    (GroupKind::new("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"), Cluster),
    (GroupKind::new("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"), Cluster),
    (GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition"), Cluster),
    (GroupKind::new("apiregistration.k8s.io", "APIService"), Cluster),
    (GroupKind::new("apps", "ControllerRevision"), Namespaced),
    (GroupKind::new("apps", "DaemonSet"), Namespaced),
    (GroupKind::new("apps", "Deployment"), Namespaced),
    (GroupKind::new("apps", "ReplicaSet"), Namespaced),
    (GroupKind::new("apps", "StatefulSet"), Namespaced),
    (GroupKind::new("autoscaling", "HorizontalPodAutoscaler"), Namespaced),
    (GroupKind::new("batch", "CronJob"), Namespaced),
    (GroupKind::new("batch", "Job"), Namespaced),
    (GroupKind::new("discovery.k8s.io", "EndpointSlice"), Namespaced),
    (GroupKind::new("networking.k8s.io", "Ingress"), Namespaced),
    (GroupKind::new("networking.k8s.io", "IngressClass"), Cluster),
    (GroupKind::new("networking.k8s.io", "NetworkPolicy"), Namespaced),
    (GroupKind::new("policy", "PodDisruptionBudget"), Namespaced),
    (GroupKind::new("rbac.authorization.k8s.io", "ClusterRole"), Cluster),
    (GroupKind::new("rbac.authorization.k8s.io", "ClusterRoleBinding"), Cluster),
    (GroupKind::new("rbac.authorization.k8s.io", "Role"), Namespaced),
    (GroupKind::new("rbac.authorization.k8s.io", "RoleBinding"), Namespaced),
    (GroupKind::new("scheduling.k8s.io", "PriorityClass"), Cluster),
    (GroupKind::new("storage.k8s.io", "CSIDriver"), Cluster),
    (GroupKind::new("storage.k8s.io", "StorageClass"), Cluster),
];

/// What must exist before what; kinds that are not listed come last.
const ORDER: [&str; 32] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Where a kind stands in the order of application.
pub fn rank(kind: &str) -> usize {
    ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len())
}

/// The scope of a built-in kind or an envelope; none for custom kinds.
pub fn scope(kind: &GroupKind) -> Option<Scope> {
    if *kind == names::CLUSTER_ENVELOPE {
        return Some(Cluster);
    }
    if *kind == names::ENVELOPE {
        return Some(Namespaced);
    }
    BUILT_IN.iter().find(|(known, _)| known == kind).map(|(_, scope)| *scope)
}

/// Whether objects of this kind may be taken to member clusters at all.
pub fn is_selectable(kind: &GroupKind) -> bool {
    match (kind.group.as_str(), kind.kind.as_str()) {
        (names::CLUSTER_GROUP | "events.k8s.io" | "coordination.k8s.io" | "metrics.k8s.io", _)
        | ("", "Event" | "Pod" | "Node") => false,
        (names::PLACEMENT_GROUP, _) => *kind == names::CLUSTER_ENVELOPE || *kind == names::ENVELOPE,
        ("networking.fleet.azure.com", kind) => {
            !matches!(kind, "ServiceImport" | "TrafficManagerProfile" | "TrafficManagerBackend")
        }
        _ => true,
    }
}

/// Namespaces that belong to the fleet or to Kubernetes itself.
pub fn is_reserved_namespace(name: &str) -> bool {
    name.starts_with("fleet-") || name.starts_with("kube-")
}
