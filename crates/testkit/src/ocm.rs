//! Objects of Open Cluster Management.

use serde_json::{Value, json};

use crate::builder::{Builder, object};

/// The set that clusters of tests belong to.
pub const SET: &str = "fleet";
/// The namespace in which tests place and roll out.
pub const NAMESPACE: &str = "apps";

/// A member of [`SET`] that is available.
pub fn managed_cluster(name: &str) -> Builder {
    object("cluster.open-cluster-management.io/v1", "ManagedCluster", name)
        .label("cluster.open-cluster-management.io/clusterset", SET)
        .spec(json!({"hubAcceptsClient": true}))
}

/// [`SET`], and the binding that lets [`NAMESPACE`] use it.
pub fn bound_set() -> [Builder; 2] {
    let version = "cluster.open-cluster-management.io/v1beta2";
    let selector = json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}});
    [
        object(version, "ManagedClusterSet", SET).spec(selector),
        object(version, "ManagedClusterSetBinding", SET)
            .namespace(NAMESPACE)
            .spec(json!({"clusterSet": SET})),
    ]
}

/// A placement in [`NAMESPACE`].
pub fn placement(name: &str, spec: Value) -> Builder {
    object("cluster.open-cluster-management.io/v1beta1", "Placement", name)
        .namespace(NAMESPACE)
        .spec(spec)
}

/// A replica set in [`NAMESPACE`] with one `ConfigMap`, that is protected by its finalizer.
pub fn replica_set(name: &str, version: &str, references: &Value) -> Builder {
    object("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet", name)
        .namespace(NAMESPACE)
        .with(
            "/metadata/finalizers",
            json!(["work.open-cluster-management.io/manifest-work-cleanup"]),
        )
        .spec(json!({
            "cascadeDeletionPolicy": "Background",
            "manifestWorkTemplate": template(version),
            "placementRefs": references,
        }))
}

/// The template of one version.
pub fn template(version: &str) -> Value {
    json!({"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"}, "data": {"version": version}}]}})
}

/// A condition of an agent about one generation.
pub fn condition(kind: &str, status: &str, generation: i64, since: &str) -> Value {
    json!({"type": kind, "status": status, "observedGeneration": generation,
        "lastTransitionTime": since, "reason": "Reported", "message": ""})
}
