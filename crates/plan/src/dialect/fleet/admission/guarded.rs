//! What the guard rail is asked about: the definitions of the fleet's kinds, member clusters, and
//! what lies in namespaces of the fleet and of Kubernetes.

use convoy_api::kinds::NAMESPACE;

use super::{DEFINITIONS, MEMBERS};
use crate::admission::{Guarded, GuardedKinds, Operation, Role, Served, Webhook};
use crate::dialect::fleet::names::{
    CLUSTER_GROUP, FLEET_RESOURCE, NAMESPACE_NAME, NETWORKING_GROUP, PLACEMENT_GROUP,
};

const CONFIGURATION: &str = "fleet-guard-rail-webhook-configuration";
const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const ALL: &[Operation] = &[Operation::Create, Operation::Update, Operation::Delete];
const CLUSTER: &str = "Cluster";
const NAMESPACED: &str = "Namespaced";

const NAMESPACES: Served = Served { kind: NAMESPACE, version: "v1", plural: "namespaces" };

const WITH_MEMBERS: &[Served] = &[MEMBERS];

pub(super) const WEBHOOKS: &[Webhook] = &[
    guard(
        "fleet.customresourcedefinition.guardrail.validating",
        "/validate-fleetresourcehandler/customresourcedefinition",
        DEFINITIONS,
        &[],
        &Guarded {
            kinds: &[of_cluster("apiextensions.k8s.io", "v1", &["customresourcedefinitions"])],
            namespaces: None,
        },
    ),
    guard(
        "fleet.membercluster.guardrail.validating",
        "/validate-fleetresourcehandler/membercluster",
        MEMBERS,
        &[],
        &Guarded {
            kinds: &[of_cluster(
                CLUSTER_GROUP,
                "v1beta1",
                &["memberclusters", "memberclusters/status"],
            )],
            namespaces: None,
        },
    ),
    guard(
        "fleet.fleetmembernamespacedresources.guardrail.validating",
        "/validate-fleetresourcehandler/fleetmembernamespacedresources",
        MEMBERS,
        WITH_MEMBERS,
        &Guarded { kinds: INSIDE, namespaces: Some((FLEET_RESOURCE, &["true"])) },
    ),
    guard(
        "fleet.fleetsystemnamespacedresources.guardrail.validating",
        "/validate-fleetresourcehandler/fleetsystemnamespacedresources",
        MEMBERS,
        &[],
        &Guarded { kinds: INSIDE, namespaces: Some((NAMESPACE_NAME, &["fleet-system"])) },
    ),
    guard(
        "fleet.kubenamespacedresources.guardrail.validating",
        "/validate-fleetresourcehandler/kubenamespacedresources",
        MEMBERS,
        &[],
        &Guarded {
            kinds: INSIDE,
            namespaces: Some((NAMESPACE_NAME, &["kube-system", "kube-public", "kube-node-lease"])),
        },
    ),
    guard(
        "fleet.namespace.guardrail.validating",
        "/validate-fleetresourcehandler/namespace",
        NAMESPACES,
        &[],
        &Guarded { kinds: &[of_cluster("", "v1", &["namespaces"])], namespaces: None },
    ),
];

/// What is guarded in a namespace. Leases and events are written all the time, and are not; so is
/// whatever is not named here and is not deleted.
const INSIDE: &[GuardedKinds] = &[
    GuardedKinds {
        operations: &[Operation::Delete],
        group: "*",
        version: "*",
        resources: &["*/*"],
        scope: NAMESPACED,
    },
    within(
        "",
        "v1",
        &[
            "bindings",
            "configmaps",
            "endpoints",
            "limitranges",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "podtemplates",
            "pods",
            "pods/status",
            "replicationcontrollers",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
            "secrets",
            "serviceaccounts",
            "serviceaccounts/token",
            "services",
            "services/status",
        ],
    ),
    within(
        "apps",
        "v1",
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "replicasets",
            "replicasets/status",
            "deployments",
            "deployments/status",
            "statefulsets",
            "statefulsets/status",
        ],
    ),
    within(
        "authorization.k8s.io",
        "v1",
        &["localsubjectaccessreviews", "localsubjectaccessreviews/status"],
    ),
    within("autoscaling", "v1", &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
    within("batch", "v1", &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
    within("discovery.k8s.io", "v1", &["endpointslices"]),
    within(
        "networking.k8s.io",
        "v1",
        &["ingresses", "ingresses/status", "networkpolicies", "networkpolicies/status"],
    ),
    within("policy", "v1", &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
    within("rbac.authorization.k8s.io", "v1", &["roles", "rolebindings"]),
    within("storage.k8s.io", "v1", &["csistoragecapacities"]),
    within(CLUSTER_GROUP, "v1beta1", &["internalmemberclusters", "internalmemberclusters/status"]),
    within(PLACEMENT_GROUP, "v1beta1", &["works", "works/status"]),
    within(
        NETWORKING_GROUP,
        "v1alpha1",
        &[
            "endpointsliceexports",
            "endpointsliceimports",
            "internalserviceexports",
            "internalserviceexports/status",
            "internalserviceimports",
            "internalserviceimports/status",
        ],
    ),
];

const fn guard(
    name: &'static str,
    path: &'static str,
    about: Served,
    beside: &'static [Served],
    guarded: &'static Guarded,
) -> Webhook {
    let role = Role::Guards(guarded);
    Webhook { name, configuration: CONFIGURATION, path, role, about, operations: ALL, beside }
}

const fn of_cluster(
    group: &'static str,
    version: &'static str,
    resources: &'static [&'static str],
) -> GuardedKinds {
    GuardedKinds { operations: ALL, group, version, resources, scope: CLUSTER }
}

const fn within(
    group: &'static str,
    version: &'static str,
    resources: &'static [&'static str],
) -> GuardedKinds {
    GuardedKinds { operations: WRITES, group, version, resources, scope: NAMESPACED }
}
