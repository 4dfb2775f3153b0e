//! The manifests of a work, each with the resource that it is applied to.

use convoy_api::{Object, ObjectKey};
use serde_json::Value;

use super::kinds::Kinds;
use crate::dialect::fleet_agent::read::manifest::{Identifier, Problem, manifests};

/// One manifest.
#[derive(Clone, Debug)]
pub(crate) struct Item<'w> {
    pub(crate) identifier: Identifier,
    pub(crate) raw: &'w Value,
    /// The plural of its kind; empty where the member does not serve it.
    pub(crate) resource: String,
    pub(crate) problem: Option<Problem>,
}

/// The manifests of a work, in its order. An object of cluster scope has no namespace, whatever
/// its manifest says.
pub(crate) fn items<'w>(work: &'w Object, kinds: &Kinds<'_>) -> Vec<Item<'w>> {
    let read = manifests(work).into_iter().map(|manifest| {
        let mut identifier = manifest.identifier;
        if kinds.is_cluster_scoped(&identifier.kind) {
            identifier.namespace = "".into();
        }
        let is_object = manifest.problem != Some(Problem::NotAnObject);
        let resource = if is_object { kinds.resource(&identifier.kind) } else { String::new() };
        Item { identifier, raw: manifest.raw, resource, problem: manifest.problem }
    });
    read.collect()
}

impl Item<'_> {
    /// The object on the member.
    pub(crate) fn key(&self, member: &str) -> ObjectKey {
        self.identifier.key(member)
    }

    /// The manifest as the status of a work names it.
    pub(crate) fn meta(&self) -> Value {
        self.identifier.served_as(&self.resource)
    }

    /// Where a kind stands in the order of application: what others need comes first.
    pub(crate) fn rank(&self) -> u16 {
        match self.identifier.kind.kind.as_str() {
            "PriorityClass"
            | "Namespace"
            | "CustomResourceDefinition"
            | "StorageClass"
            | "PersistentVolume"
            | "PodSecurityPolicy" => 0,
            "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => 1,
            "NetworkPolicy"
            | "ResourceQuota"
            | "LimitRange"
            | "PodDisruptionBudget"
            | "ServiceAccount" => 2,
            "Secret" | "ConfigMap" | "PersistentVolumeClaim" => 3,
            "Service" => 4,
            "DaemonSet"
            | "Pod"
            | "ReplicationController"
            | "ReplicaSet"
            | "Deployment"
            | "HorizontalPodAutoscaler"
            | "StatefulSet"
            | "Job"
            | "CronJob" => 5,
            "APIService"
            | "MutatingWebhookConfiguration"
            | "ValidatingWebhookConfiguration"
            | "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding" => 6,
            _ => 1000,
        }
    }
}
