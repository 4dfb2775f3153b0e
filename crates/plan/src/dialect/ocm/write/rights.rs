//! The rights of a managed cluster's agents on the hub, as upstream grants them: names, rules
//! and subjects are a contract with agents that upstream's tools install.

use convoy_api::GroupKind;
use convoy_api::kinds::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, RBAC_GROUP, ROLE_BINDING};
use convoy_api::ocm::names::{CLUSTER_GROUP, WORK_GROUP};
use serde_json::{Value, json};

use crate::dialect::ocm::names::{CLUSTER_NAME_LABEL, WORK_FINALIZER};

/// An object that grants rights.
pub(crate) struct Right {
    pub(crate) kind: GroupKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) object: Value,
}

const REGISTRATION_ROLE: &str = "open-cluster-management:managedcluster:registration";
const WORK_ROLE: &str = "open-cluster-management:managedcluster:work";

impl Right {
    fn new(kind: GroupKind, namespace: &str, name: &str, cluster: &str, rest: Value) -> Self {
        let mut metadata = json!({"name": name, "labels": {CLUSTER_NAME_LABEL: cluster}});
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        let mut object = json!({"apiVersion": format!("{RBAC_GROUP}/v1"), "kind": kind.kind});
        object["metadata"] = metadata;
        if let (Some(fields), Value::Object(rest)) = (object.as_object_mut(), rest) {
            fields.extend(rest);
        }
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { kind, namespace, name, object }
    }

    /// The member that says what is granted; who gets it for bindings, whose role is fixed.
    pub(crate) fn part(&self) -> &'static str {
        if self.kind == CLUSTER_ROLE { "rules" } else { "subjects" }
    }
}

/// The roles that the agents of all clusters share.
pub(crate) fn common() -> [Right; 2] {
    let addons = "addon.open-cluster-management.io";
    // Upstream's agent updates its Lease, Convoy's patches it.
    let registration = json!({"rules": [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": [addons], "resources": ["managedclusteraddons"],
            "verbs": ["get", "list", "watch"]},
        {"apiGroups": [addons], "resources": ["managedclusteraddons/status"],
            "verbs": ["patch", "update"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    ]});
    let work = json!({"rules": [
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"],
            "verbs": ["create", "patch", "update"]},
        {"apiGroups": [WORK_GROUP], "resources": ["manifestworks"],
            "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": [WORK_GROUP], "resources": ["manifestworks/status"],
            "verbs": ["patch", "update"]},
    ]});
    [(REGISTRATION_ROLE, registration), (WORK_ROLE, work)]
        .map(|(name, rules)| Right::new(CLUSTER_ROLE, "", name, "", rules))
}

/// What a cluster may do with its own ManagedCluster.
pub(crate) fn of_cluster(cluster: &str, accepted: bool) -> [Right; 2] {
    let name = format!("open-cluster-management:managedcluster:{cluster}");
    let own = |resource: &str, verbs: &[&str]| {
        json!({"apiGroups": [CLUSTER_GROUP], "resources": [resource], "resourceNames": [cluster],
            "verbs": verbs})
    };
    let rules = if accepted {
        json!([
            {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
                "verbs": ["create", "get", "list", "watch"]},
            {"apiGroups": ["register.open-cluster-management.io"],
                "resources": ["managedclusters/clientcertificates"], "verbs": ["renew"]},
            own("managedclusters", &["get", "list", "update", "watch"]),
            own("managedclusters/status", &["patch", "update"]),
        ])
    } else {
        json!([own("managedclusters", &["get", "list", "watch"])])
    };
    [
        Right::new(CLUSTER_ROLE, "", &name, cluster, json!({"rules": rules})),
        Right::new(CLUSTER_ROLE_BINDING, "", &name, cluster, bound(&name, cluster)),
    ]
}

/// What the agents may do in the namespace of their cluster.
pub(crate) fn of_agents(cluster: &str) -> [Right; 2] {
    let [registration, mut work] =
        [("registration", REGISTRATION_ROLE), ("work", WORK_ROLE)].map(|(agent, role)| {
            let name = format!("open-cluster-management:managedcluster:{cluster}:{agent}");
            Right::new(ROLE_BINDING, cluster, &name, cluster, bound(role, cluster))
        });
    work.object["metadata"]["finalizers"] = json!([WORK_FINALIZER]);
    [registration, work]
}

/// The roles that the agents of an accepted cluster have.
pub fn agent_roles(cluster: &str) -> Vec<Value> {
    let all = common().into_iter().chain(of_cluster(cluster, true));
    all.filter(|right| right.kind == CLUSTER_ROLE).map(|right| right.object).collect()
}

/// A role for the agents of a cluster, who are in one of two groups.
fn bound(role: &str, cluster: &str) -> Value {
    let groups = ["system:open-cluster-management", "open-cluster-management"];
    let subjects = groups.map(|group| {
        json!({"kind": "Group", "apiGroup": RBAC_GROUP, "name": format!("{group}:{cluster}")})
    });
    json!({
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}
