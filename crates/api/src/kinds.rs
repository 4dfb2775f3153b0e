//! Kubernetes' own kinds that more than one part of Convoy names. Kinds of one API group stand
//! in the module of that group.

use crate::object::GroupKind;

pub const CONFIG_MAP: GroupKind = GroupKind::new("", "ConfigMap");
pub const ENDPOINTS: GroupKind = GroupKind::new("", "Endpoints");
pub const NAMESPACE: GroupKind = GroupKind::new("", "Namespace");
pub const NODE: GroupKind = GroupKind::new("", "Node");
pub const PERSISTENT_VOLUME_CLAIM: GroupKind = GroupKind::new("", "PersistentVolumeClaim");
pub const POD: GroupKind = GroupKind::new("", "Pod");
pub const REPLICATION_CONTROLLER: GroupKind = GroupKind::new("", "ReplicationController");
pub const SERVICE: GroupKind = GroupKind::new("", "Service");

pub const CONTROLLER_REVISION: GroupKind = GroupKind::new("apps", "ControllerRevision");
pub const DAEMON_SET: GroupKind = GroupKind::new("apps", "DaemonSet");
pub const DEPLOYMENT: GroupKind = GroupKind::new("apps", "Deployment");
pub const REPLICA_SET: GroupKind = GroupKind::new("apps", "ReplicaSet");
pub const STATEFUL_SET: GroupKind = GroupKind::new("apps", "StatefulSet");
pub const CRON_JOB: GroupKind = GroupKind::new("batch", "CronJob");
pub const JOB: GroupKind = GroupKind::new("batch", "Job");

pub const CUSTOM_RESOURCE_DEFINITION: GroupKind =
    GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");

pub const ENDPOINT_SLICE: GroupKind = GroupKind::new("discovery.k8s.io", "EndpointSlice");

pub const LEASE: GroupKind = GroupKind::new("coordination.k8s.io", "Lease");

/// The API group of rights.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
pub const CLUSTER_ROLE: GroupKind = GroupKind::new(RBAC_GROUP, "ClusterRole");
pub const CLUSTER_ROLE_BINDING: GroupKind = GroupKind::new(RBAC_GROUP, "ClusterRoleBinding");
pub const ROLE: GroupKind = GroupKind::new(RBAC_GROUP, "Role");
pub const ROLE_BINDING: GroupKind = GroupKind::new(RBAC_GROUP, "RoleBinding");

pub const POD_DISRUPTION_BUDGET: GroupKind = GroupKind::new("policy", "PodDisruptionBudget");
