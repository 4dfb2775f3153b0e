//! Where objects name and select others, by kind: one row for each field.

use convoy_api::GroupKind;
use convoy_api::kinds::{
    CONFIG_MAP, CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, NODE, PERSISTENT_VOLUME_CLAIM, POD,
    POD_DISRUPTION_BUDGET, REPLICA_SET, ROLE_BINDING, SERVICE, STATEFUL_SET,
};
use convoy_api::ocm::names::{
    MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING, MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET, PLACEMENT,
};
use convoy_api::skyhook::{DEPLOYMENT_POLICY, SKYHOOK};

use crate::built_in_kind::{self, Scope};

/// A field that names or selects objects.
pub(super) struct Row {
    /// `[]` stands for every entry of a list.
    pub(super) path: String,
    pub(super) target: Target,
}

/// What a field says about other objects.
#[derive(Clone)]
pub(super) enum Target {
    /// The name of one object of a kind.
    Named(GroupKind, ReferenceScope),
    /// An object that has the kind beside the name.
    NamedByReference,
    /// A selector of objects of a kind without namespaces.
    Selected(GroupKind),
    /// A selector of pods in the object's own namespace.
    SelectedPods,
    /// An entry that has a kind, and a name or a selector.
    NamedOrSelected,
}

/// Where a named object is.
#[derive(Clone, Copy)]
pub(super) enum ReferenceScope {
    Cluster,
    /// In the namespace of the object that names it.
    Namespace,
}

const fn fleet(kind: &'static str) -> GroupKind {
    GroupKind::new("placement.kubernetes-fleet.io", kind)
}

const MEMBER_CLUSTER: GroupKind = GroupKind::new("cluster.kubernetes-fleet.io", "MemberCluster");
const SECRET: GroupKind = GroupKind::new("", "Secret");
const SERVICE_ACCOUNT: GroupKind = GroupKind::new("", "ServiceAccount");
const PRIORITY_CLASS: GroupKind = GroupKind::new("scheduling.k8s.io", "PriorityClass");
const INGRESS: GroupKind = GroupKind::new("networking.k8s.io", "Ingress");
const NETWORK_POLICY: GroupKind = GroupKind::new("networking.k8s.io", "NetworkPolicy");
const AUTOSCALER: GroupKind = GroupKind::new("autoscaling", "HorizontalPodAutoscaler");
const NODE_POOL: GroupKind = GroupKind::new("karpenter.sh", "NodePool");

/// The rows of one kind.
pub(super) fn rows_of(kind: &GroupKind) -> Vec<Row> {
    let own = OWN.iter().filter(|(of, _, _)| of == kind);
    let mut rows: Vec<Row> = own
        .map(|(_, path, target)| Row { path: (*path).to_owned(), target: target.clone() })
        .collect();
    if let Some(spec) = pod_spec(kind) {
        rows.extend(
            OF_PODS.iter().map(|(path, target)| Row {
                path: format!("{spec}.{path}"),
                target: target.clone(),
            }),
        );
        for containers in ["containers", "initContainers"] {
            rows.extend(OF_CONTAINERS.iter().map(|(path, kind)| Row {
                path: format!("{spec}.{containers}[].{path}"),
                target: Target::Named(kind.clone(), ReferenceScope::Namespace),
            }));
        }
    }
    rows
}

/// Where a kind has the spec of its pods.
fn pod_spec(kind: &GroupKind) -> Option<&'static str> {
    if *kind == POD {
        Some("spec")
    } else if *kind == CRON_JOB {
        Some("spec.jobTemplate.spec.template.spec")
    } else {
        [DEPLOYMENT, REPLICA_SET, DAEMON_SET, STATEFUL_SET, JOB]
            .contains(kind)
            .then_some("spec.template.spec")
    }
}

/// Where a kind has the labels of its pods, as a JSON pointer.
pub(super) fn pod_template(kind: &GroupKind) -> Option<&'static str> {
    match pod_spec(kind)? {
        "spec" => Some("/metadata/labels"),
        "spec.template.spec" => Some("/spec/template/metadata/labels"),
        _ => Some("/spec/jobTemplate/spec/template/metadata/labels"),
    }
}

/// Whether objects of a kind that is looked for here have a namespace.
pub(super) fn is_namespaced(kind: &GroupKind) -> bool {
    let ours = [PLACEMENT, MANAGED_CLUSTER_SET_BINDING, MANIFEST_WORK_REPLICA_SET, MANIFEST_WORK];
    let fleets = ["ResourcePlacement", "StagedUpdateStrategy", "StagedUpdateRun"].map(fleet);
    *kind == POD
        || built_in_kind::scope(kind) == Some(Scope::Namespaced)
        || ours.contains(kind)
        || fleets.contains(kind)
}

use ReferenceScope::{Cluster, Namespace};
use Target::{Named, NamedByReference, NamedOrSelected, Selected, SelectedPods};

static OWN: [(GroupKind, &str, Target); 33] = [
    (SKYHOOK, "spec.nodeSelectors", Selected(NODE)),
    (DEPLOYMENT_POLICY, "spec.compartments[].selector", Selected(NODE)),
    (fleet("ClusterResourcePlacement"), "spec.resourceSelectors[]", NamedOrSelected),
    (
        fleet("ClusterResourcePlacement"),
        "spec.policy.clusterNames[]",
        Named(MEMBER_CLUSTER, Cluster),
    ),
    (fleet("ClusterResourcePlacement"), CLUSTER_TERMS, Selected(MEMBER_CLUSTER)),
    (fleet("ResourcePlacement"), "spec.policy.clusterNames[]", Named(MEMBER_CLUSTER, Cluster)),
    (fleet("ResourcePlacement"), CLUSTER_TERMS, Selected(MEMBER_CLUSTER)),
    (fleet("ClusterStagedUpdateStrategy"), "spec.stages[].labelSelector", Selected(MEMBER_CLUSTER)),
    (fleet("StagedUpdateStrategy"), "spec.stages[].labelSelector", Selected(MEMBER_CLUSTER)),
    (fleet("ClusterStagedUpdateRun"), "spec.placementName", PLACED),
    (
        fleet("ClusterStagedUpdateRun"),
        "spec.stagedRolloutStrategyName",
        Named(fleet("ClusterStagedUpdateStrategy"), Cluster),
    ),
    (fleet("StagedUpdateRun"), "spec.placementName", Named(fleet("ResourcePlacement"), Namespace)),
    (
        fleet("StagedUpdateRun"),
        "spec.stagedRolloutStrategyName",
        Named(fleet("StagedUpdateStrategy"), Namespace),
    ),
    (fleet("ClusterResourcePlacementEviction"), "spec.placementName", PLACED),
    (fleet("ClusterResourcePlacementEviction"), "spec.clusterName", Named(MEMBER_CLUSTER, Cluster)),
    (fleet("ClusterResourcePlacementDisruptionBudget"), "metadata.name", PLACED),
    (fleet("ClusterResourceOverride"), "spec.placement.name", PLACED),
    (NODE_POOL, "spec.template.spec.nodeClassRef", NamedByReference),
    (PLACEMENT, "spec.clusterSets[]", Named(MANAGED_CLUSTER_SET_BINDING, Namespace)),
    (
        PLACEMENT,
        "spec.predicates[].requiredClusterSelector.labelSelector",
        Selected(MANAGED_CLUSTER),
    ),
    (MANAGED_CLUSTER_SET, "spec.clusterSelector.labelSelector", Selected(MANAGED_CLUSTER)),
    (MANAGED_CLUSTER_SET_BINDING, "spec.clusterSet", Named(MANAGED_CLUSTER_SET, Cluster)),
    (MANIFEST_WORK_REPLICA_SET, "spec.placementRefs[].name", Named(PLACEMENT, Namespace)),
    (MANIFEST_WORK, "metadata.namespace", Named(MANAGED_CLUSTER, Cluster)),
    (SERVICE, "spec.selector", SelectedPods),
    (POD_DISRUPTION_BUDGET, "spec.selector", SelectedPods),
    (NETWORK_POLICY, "spec.podSelector", SelectedPods),
    (AUTOSCALER, "spec.scaleTargetRef", NamedByReference),
    (ROLE_BINDING, "roleRef", NamedByReference),
    (STATEFUL_SET, "spec.serviceName", Named(SERVICE, Namespace)),
    (INGRESS, "spec.defaultBackend.service.name", Named(SERVICE, Namespace)),
    (INGRESS, "spec.rules[].http.paths[].backend.service.name", Named(SERVICE, Namespace)),
    (INGRESS, "spec.tls[].secretName", Named(SECRET, Namespace)),
];

const PLACED: Target = Named(fleet("ClusterResourcePlacement"), Cluster);

const CLUSTER_TERMS: &str = "spec.policy.affinity.clusterAffinity.\
    requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[].labelSelector";

/// Below the spec of a pod.
static OF_PODS: [(&str, Target); 8] = [
    ("nodeSelector", Selected(NODE)),
    ("serviceAccountName", Named(SERVICE_ACCOUNT, Namespace)),
    ("priorityClassName", Named(PRIORITY_CLASS, Cluster)),
    ("imagePullSecrets[].name", Named(SECRET, Namespace)),
    ("volumes[].configMap.name", Named(CONFIG_MAP, Namespace)),
    ("volumes[].secret.secretName", Named(SECRET, Namespace)),
    ("volumes[].persistentVolumeClaim.claimName", Named(PERSISTENT_VOLUME_CLAIM, Namespace)),
    ("volumes[].projected.sources[].configMap.name", Named(CONFIG_MAP, Namespace)),
];

/// Below a container.
static OF_CONTAINERS: [(&str, GroupKind); 4] = [
    ("envFrom[].configMapRef.name", CONFIG_MAP),
    ("envFrom[].secretRef.name", SECRET),
    ("env[].valueFrom.configMapKeyRef.name", CONFIG_MAP),
    ("env[].valueFrom.secretKeyRef.name", SECRET),
];
