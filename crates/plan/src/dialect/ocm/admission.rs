//! The webhooks of managed clusters, set bindings, works and replica sets, under the names and with
//! the messages of upstream's; and warnings about placements and cluster sets, which upstream's
//! server takes as they are.

mod managed_cluster;

use convoy_api::Object;
use convoy_api::kinds::NAMESPACE;
use convoy_api::object::member::{field, text};
use convoy_api::ocm::names::{
    MANAGED_CLUSTER, MANAGED_CLUSTER_SET, MANAGED_CLUSTER_SET_BINDING, MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET, PLACEMENT, WORK_GROUP,
};
use serde_json::Value;

use super::validate::{manifests_problem, validate};
use crate::admission::{NeededRight, Operation, Request, Role, Served, Verdict, Webhook};
use crate::diagnostic::{Diagnostic, Severity};
use crate::world::World;

const CLUSTERS: Served = Served { kind: MANAGED_CLUSTER, version: "v1", plural: "managedclusters" };
const SETS: Served =
    Served { kind: MANAGED_CLUSTER_SET, version: "v1beta2", plural: "managedclustersets" };
const BINDINGS: Served = Served {
    kind: MANAGED_CLUSTER_SET_BINDING,
    version: "v1beta2",
    plural: "managedclustersetbindings",
};
const PLACEMENTS: Served = Served { kind: PLACEMENT, version: "v1beta1", plural: "placements" };
const WORKS: Served = Served { kind: MANIFEST_WORK, version: "v1", plural: "manifestworks" };
const REPLICA_SETS: Served = Served {
    kind: MANIFEST_WORK_REPLICA_SET,
    version: "v1alpha1",
    plural: "manifestworkreplicasets",
};
const NAMESPACES: Served = Served { kind: NAMESPACE, version: "v1", plural: "namespaces" };
const WRITES: &[Operation] = &[Operation::Create, Operation::Update];

pub(super) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        name: "managedclustermutators.admission.cluster.open-cluster-management.io",
        configuration: "managedclustermutators.admission.cluster.open-cluster-management.io",
        path: "/mutate-cluster-open-cluster-management-io-v1-managedcluster",
        role: Role::Mutates,
        about: CLUSTERS,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "managedclustervalidators.admission.cluster.open-cluster-management.io",
        configuration: "managedclustervalidators.admission.cluster.open-cluster-management.io",
        path: "/validate-cluster-open-cluster-management-io-v1-managedcluster",
        role: Role::Validates,
        about: CLUSTERS,
        operations: WRITES,
        beside: &[NAMESPACES],
    },
    Webhook {
        name: "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io",
        configuration: "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io",
        path: "/validate-cluster-open-cluster-management-io-v1beta2-managedclustersetbinding",
        role: Role::Validates,
        about: BINDINGS,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "manifestworkvalidators.admission.work.open-cluster-management.io",
        configuration: "manifestworkvalidators.admission.work.open-cluster-management.io",
        path: "/validate-work-open-cluster-management-io-v1-manifestwork",
        role: Role::Validates,
        about: WORKS,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "manifestworkreplicasetvalidators.admission.work.open-cluster-management.io",
        configuration: "manifestworkreplicasetvalidators.admission.work.open-cluster-management.io",
        path: "/validate-work-open-cluster-management-io-v1alpha1-manifestworkreplicaset",
        role: Role::Validates,
        about: REPLICA_SETS,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "placementwarnings.admission.cluster.open-cluster-management.io",
        configuration: "convoy-ocm-warnings",
        path: "/warn-cluster-open-cluster-management-io-v1beta1-placement",
        role: Role::Warns,
        about: PLACEMENTS,
        operations: WRITES,
        beside: &[],
    },
    Webhook {
        name: "managedclustersetwarnings.admission.cluster.open-cluster-management.io",
        configuration: "convoy-ocm-warnings",
        path: "/warn-cluster-open-cluster-management-io-v1beta2-managedclusterset",
        role: Role::Warns,
        about: SETS,
        operations: WRITES,
        beside: &[],
    },
];

/// What one of them says.
pub(super) fn admit(webhook: &Webhook, world: &World, request: &Request<'_>) -> Verdict {
    let Some(object) = request.object.filter(|object| !is_leaving(object)) else {
        return Verdict::allowed();
    };
    let kind = &webhook.about.kind;
    if *kind == MANAGED_CLUSTER {
        return match webhook.role {
            Role::Mutates => managed_cluster::completed(object, request),
            Role::Guards(_) => Verdict::allowed(),
            Role::Validates | Role::Warns => managed_cluster::judged(world, object, request),
        };
    }
    if *kind == MANAGED_CLUSTER_SET_BINDING {
        return binding(object, request);
    }
    if *kind == MANIFEST_WORK {
        return work(object, request);
    }
    if *kind == MANIFEST_WORK_REPLICA_SET && asks_for_more(request) {
        let template = field(field(object, "spec"), "manifestWorkTemplate");
        let empty = "Workload manifests should not be empty";
        if let Some(message) = manifests_problem(template, empty) {
            return Verdict::Invalid(message);
        }
    }
    Verdict::Allowed { changes: Vec::new(), warnings: warnings(object) }
}

/// The rights that upstream's webhooks ask for.
pub(super) fn rights(webhook: &Webhook, request: &Request<'_>) -> Vec<NeededRight> {
    let Some(object) = request.object.filter(|object| !is_leaving(object)) else {
        return Vec::new();
    };
    let kind = &webhook.about.kind;
    if *kind == MANAGED_CLUSTER && webhook.role == Role::Validates {
        return managed_cluster::rights(object, request.old);
    }
    if *kind == MANAGED_CLUSTER_SET_BINDING && request.old.is_none() {
        return vec![managed_cluster::of_set("bind", text(field(object, "spec"), "clusterSet"))];
    }
    let executors = [Some(object), request.old].map(|it| it.map(executor));
    if *kind == MANIFEST_WORK && executors[0] != executors[1] {
        return executor_right(object).into_iter().collect();
    }
    Vec::new()
}

/// What is on its way out can always be labelled and let go.
fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether the spec is new: what was stored before can always be labelled.
fn asks_for_more(request: &Request<'_>) -> bool {
    let spec = |object: Option<&'_ Value>| object.map(|it| field(it, "spec").clone());
    spec(request.object) != spec(request.old)
}

fn binding(object: &Value, request: &Request<'_>) -> Verdict {
    let set = text(field(object, "spec"), "clusterSet");
    if set != text(field(object, "metadata"), "name") {
        let message =
            "The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet";
        return Verdict::Invalid(message.to_owned());
    }
    if request.circumstances.denied.is_empty() {
        return Verdict::allowed();
    }
    let user = request.user;
    Verdict::Refused(format!(
        "managedclustersets/bind.cluster.open-cluster-management.io {set:?} is forbidden: user \
         {user:?} is not allowed to bind cluster set {set:?}"
    ))
}

fn work(object: &Value, request: &Request<'_>) -> Verdict {
    if !asks_for_more(request) {
        return Verdict::allowed();
    }
    let empty = "manifests should not be empty";
    if let Some(message) = manifests_problem(field(object, "spec"), empty) {
        return Verdict::Invalid(message);
    }
    let subject = field(executor(object), "subject");
    let account = field(subject, "serviceAccount");
    if text(subject, "type") == "ServiceAccount" && account.is_null() {
        return Verdict::Invalid("executor service account can not be nil".to_owned());
    }
    if request.circumstances.denied.is_empty() {
        return Verdict::Allowed { changes: Vec::new(), warnings: warnings(object) };
    }
    Verdict::Invalid(format!(
        "user {} cannot manipulate the Manifestwork with executor {}/{} in namespace {}",
        request.user,
        text(account, "namespace"),
        text(account, "name"),
        text(field(object, "metadata"), "namespace")
    ))
}

fn executor(work: &Value) -> &Value {
    field(field(work, "spec"), "executor")
}

/// None: nobody has to be impersonated.
fn executor_right(work: &Value) -> Option<NeededRight> {
    let account = field(field(executor(work), "subject"), "serviceAccount");
    let [namespace, name] = ["namespace", "name"].map(|part| text(account, part));
    account.is_object().then(|| NeededRight {
        verb: "execute-as",
        group: WORK_GROUP,
        resource: "manifestworks",
        subresource: "",
        namespace: text(field(work, "metadata"), "namespace").to_owned(),
        name: format!("system:serviceaccount:{namespace}:{name}"),
    })
}

/// Everything that validation finds, as warnings: upstream takes the object, and its status tells
/// about it later.
fn warnings(object: &Value) -> Vec<String> {
    let Ok(object) = Object::from_value(object.clone()) else { return Vec::new() };
    let shown = |finding: &Diagnostic| match finding.severity {
        Severity::Error => format!("{}: {} (this will not work)", finding.field, finding.message),
        Severity::Warning | Severity::Note => format!("{}: {}", finding.field, finding.message),
    };
    validate(&object).iter().map(shown).collect()
}

#[cfg(test)]
mod tests;
