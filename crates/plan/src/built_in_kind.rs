//! What is known of Kubernetes' own kinds without asking a server: which have cluster scope, and in
//! which order objects are applied.

use convoy_api::GroupKind;
use convoy_api::kinds::{NAMESPACE, NODE};

/// Where the objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Cluster,
    Namespaced,
}

use Scope::{Cluster, Namespaced};

/// The built-in kinds that can be selected.
static BUILT_IN: [(GroupKind, Scope); 38] = [
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
pub(crate) fn rank(kind: &str) -> usize {
    ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len())
}

/// The scope of a built-in kind; none for custom kinds.
pub(crate) fn scope(kind: &GroupKind) -> Option<Scope> {
    BUILT_IN.iter().find(|(known, _)| known == kind).map(|(_, scope)| *scope)
}

/// Whether objects of a built-in kind have a namespace; none for custom kinds.
pub fn is_namespaced(kind: &GroupKind) -> Option<bool> {
    if *kind == NODE { Some(false) } else { scope(kind).map(|scope| scope == Namespaced) }
}

/// The built-in kinds that are known here.
pub(crate) fn kinds() -> impl Iterator<Item = &'static GroupKind> {
    BUILT_IN.iter().map(|(kind, _)| kind)
}
