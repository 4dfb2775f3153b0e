//! The kinds that the small server serves: in the home cluster all of the dialects and those of the
//! objects that it begins with, in a member cluster those of Kubernetes, those of the agents, and
//! those that its own definitions have.

use std::collections::BTreeMap;

use convoy_api::kinds::CUSTOM_RESOURCE_DEFINITION;
use convoy_api::object::member::{field, list, text};
use convoy_api::{GroupKind, Object};
use smol_str::SmolStr;

/// A kind that is served.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) kind: GroupKind,
    pub(super) version: SmolStr,
    pub(super) plural: SmolStr,
    pub(super) namespaced: bool,
    /// Whether every member cluster has it, too.
    is_everywhere: bool,
}

/// The kinds of all clusters.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    known: Vec<Served>,
    /// By the cluster and the name of their definition.
    defined: BTreeMap<SmolStr, BTreeMap<SmolStr, Served>>,
}

const PLACEMENT: &str = "placement.kubernetes-fleet.io";
const CLUSTER: &str = "cluster.kubernetes-fleet.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const KARPENTER: &str = "karpenter.sh";
const KWOK: &str = "karpenter.kwok.sh";
const SKYHOOK: &str = "skyhook.nvidia.com";
const OCM_CLUSTER: &str = "cluster.open-cluster-management.io";
const OCM_WORK: &str = "work.open-cluster-management.io";

/// Group, version, kind, plural, and whether it is namespaced.
const KINDS: [(&str, &str, &str, &str, bool); 63] = [
    ("", "v1", "Pod", "pods", true),
    ("", "v1", "Node", "nodes", false),
    ("", "v1", "Namespace", "namespaces", false),
    ("", "v1", "ConfigMap", "configmaps", true),
    ("", "v1", "Service", "services", true),
    ("apps", "v1", "Deployment", "deployments", true),
    ("apps", "v1", "ReplicaSet", "replicasets", true),
    ("apps", "v1", "DaemonSet", "daemonsets", true),
    ("apps", "v1", "StatefulSet", "statefulsets", true),
    ("apps", "v1", "ControllerRevision", "controllerrevisions", true),
    ("batch", "v1", "Job", "jobs", true),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    ("", "v1", "ReplicationController", "replicationcontrollers", true),
    ("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", false),
    ("coordination.k8s.io", "v1", "Lease", "leases", true),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
    (RBAC, "v1", "Role", "roles", true),
    (RBAC, "v1", "RoleBinding", "rolebindings", true),
    (RBAC, "v1", "ClusterRole", "clusterroles", false),
    (RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", false),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false),
    (OCM_CLUSTER, "v1", "ManagedCluster", "managedclusters", false),
    (OCM_CLUSTER, "v1beta2", "ManagedClusterSet", "managedclustersets", false),
    (OCM_CLUSTER, "v1beta2", "ManagedClusterSetBinding", "managedclustersetbindings", true),
    (OCM_CLUSTER, "v1beta1", "Placement", "placements", true),
    (OCM_CLUSTER, "v1beta1", "PlacementDecision", "placementdecisions", true),
    (OCM_CLUSTER, "v1alpha1", "AddOnPlacementScore", "addonplacementscores", true),
    (OCM_CLUSTER, "v1alpha1", "ClusterClaim", "clusterclaims", false),
    (OCM_WORK, "v1", "ManifestWork", "manifestworks", true),
    (OCM_WORK, "v1", "AppliedManifestWork", "appliedmanifestworks", false),
    (OCM_WORK, "v1alpha1", "ManifestWorkReplicaSet", "manifestworkreplicasets", true),
    ("", "v1", "Secret", "secrets", true),
    (KARPENTER, "v1", "NodePool", "nodepools", false),
    (KARPENTER, "v1", "NodeClaim", "nodeclaims", false),
    (KWOK, "v1alpha1", "KWOKNodeClass", "kwoknodeclasses", false),
    (SKYHOOK, "v1alpha1", "Skyhook", "skyhooks", false),
    (SKYHOOK, "v1alpha1", "DeploymentPolicy", "deploymentpolicies", false),
    (CLUSTER, "v1beta1", "MemberCluster", "memberclusters", false),
    (CLUSTER, "v1beta1", "InternalMemberCluster", "internalmemberclusters", true),
    ("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile", "clusterprofiles", true),
    (PLACEMENT, "v1beta1", "ClusterResourcePlacement", "clusterresourceplacements", false),
    (PLACEMENT, "v1beta1", "ResourcePlacement", "resourceplacements", true),
    (
        PLACEMENT,
        "v1beta1",
        "ClusterResourcePlacementStatus",
        "clusterresourceplacementstatuses",
        true,
    ),
    (PLACEMENT, "v1beta1", "ClusterResourceBinding", "clusterresourcebindings", false),
    (PLACEMENT, "v1beta1", "ResourceBinding", "resourcebindings", true),
    (PLACEMENT, "v1beta1", "ClusterResourceSnapshot", "clusterresourcesnapshots", false),
    (PLACEMENT, "v1beta1", "ResourceSnapshot", "resourcesnapshots", true),
    (
        PLACEMENT,
        "v1beta1",
        "ClusterSchedulingPolicySnapshot",
        "clusterschedulingpolicysnapshots",
        false,
    ),
    (PLACEMENT, "v1beta1", "SchedulingPolicySnapshot", "schedulingpolicysnapshots", true),
    (PLACEMENT, "v1beta1", "Work", "works", true),
    (PLACEMENT, "v1beta1", "AppliedWork", "appliedworks", false),
    (PLACEMENT, "v1beta1", "ClusterResourceOverride", "clusterresourceoverrides", false),
    (
        PLACEMENT,
        "v1beta1",
        "ClusterResourceOverrideSnapshot",
        "clusterresourceoverridesnapshots",
        false,
    ),
    (PLACEMENT, "v1beta1", "ResourceOverride", "resourceoverrides", true),
    (PLACEMENT, "v1beta1", "ResourceOverrideSnapshot", "resourceoverridesnapshots", true),
    (
        PLACEMENT,
        "v1beta1",
        "ClusterResourcePlacementEviction",
        "clusterresourceplacementevictions",
        false,
    ),
    (
        PLACEMENT,
        "v1beta1",
        "ClusterResourcePlacementDisruptionBudget",
        "clusterresourceplacementdisruptionbudgets",
        false,
    ),
    (PLACEMENT, "v1beta1", "ClusterStagedUpdateRun", "clusterstagedupdateruns", false),
    (PLACEMENT, "v1beta1", "StagedUpdateRun", "stagedupdateruns", true),
    (PLACEMENT, "v1beta1", "ClusterStagedUpdateStrategy", "clusterstagedupdatestrategies", false),
    (PLACEMENT, "v1beta1", "StagedUpdateStrategy", "stagedupdatestrategies", true),
    (PLACEMENT, "v1beta1", "ClusterApprovalRequest", "clusterapprovalrequests", false),
    (PLACEMENT, "v1beta1", "ApprovalRequest", "approvalrequests", true),
];

/// The groups of custom kinds; all others are Kubernetes' own.
const CUSTOM: [&str; 8] =
    [OCM_CLUSTER, OCM_WORK, KARPENTER, KWOK, SKYHOOK, CLUSTER, PLACEMENT, "multicluster.x-k8s.io"];
/// The custom kinds that agents install on their member.
const OF_AGENTS: [&str; 3] = ["AppliedWork", "AppliedManifestWork", "ClusterClaim"];

impl Kinds {
    pub(super) fn new() -> Self {
        let served = |(group, version, kind, plural, namespaced)| Served {
            kind: GroupKind::new(group, kind),
            version: SmolStr::new_static(version),
            plural: SmolStr::new_static(plural),
            namespaced,
            is_everywhere: !CUSTOM.contains(&group) || OF_AGENTS.contains(&kind),
        };
        Self { known: KINDS.into_iter().map(served).collect(), defined: BTreeMap::new() }
    }

    /// The kinds of a cluster.
    pub(super) fn of(&self, cluster: &str) -> impl Iterator<Item = &Served> {
        let is_home = cluster.is_empty();
        let known = self.known.iter().filter(move |served| is_home || served.is_everywhere);
        known.chain(self.defined.get(cluster).into_iter().flat_map(BTreeMap::values))
    }

    /// Serves the kind of an object of the home cluster, as the server that it comes from must.
    /// Nobody here reads the plural.
    pub(super) fn serve(&mut self, object: &Object) {
        let (key, kind) = (object.key(), object.kind());
        if !key.cluster.is_empty() || self.of("").any(|served| served.kind == *kind) {
            return;
        }
        self.known.push(Served {
            kind: kind.clone(),
            version: object.version().into(),
            plural: format!("{}s", kind.kind.to_lowercase()).into(),
            namespaced: !object.namespace().is_empty(),
            is_everywhere: convoy_plan::is_namespaced(kind).is_some(),
        });
    }

    /// Serves the kind that a definition has, or no longer does. Other objects change nothing.
    pub(super) fn follow(&mut self, definition: &Object, is_deleted: bool) {
        if *definition.kind() != CUSTOM_RESOURCE_DEFINITION {
            return;
        }
        let (cluster, name) = (&definition.key().cluster, definition.name());
        if let Some(of_cluster) = self.defined.get_mut(cluster) {
            of_cluster.remove(name);
        }
        let Some(served) = defined(definition).filter(|_| !is_deleted) else { return };
        if self.of(cluster).all(|known| known.kind != served.kind) {
            self.defined.entry(cluster.clone()).or_default().insert(name.clone(), served);
        }
    }
}

/// The kind of a definition, in the version in which it is stored.
fn defined(definition: &Object) -> Option<Served> {
    let spec = definition.spec();
    let names = field(spec, "names");
    let mut versions = list(spec, "versions").iter();
    let version = versions.find(|version| version["storage"] == true)?;
    Some(Served {
        kind: GroupKind { group: text(spec, "group").into(), kind: text(names, "kind").into() },
        version: text(version, "name").into(),
        plural: text(names, "plural").into(),
        namespaced: text(spec, "scope") == "Namespaced",
        is_everywhere: false,
    })
}
