//! Deployments, ReplicaSets and pods, as a server would have stored them.

use serde_json::{Value, json};

use crate::builder::{Builder, object};

/// A pod template with one container.
pub fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}]},
    })
}

/// A Deployment `web` in the namespace `shop`.
pub fn deployment(replicas: i64, image: &str) -> Builder {
    object("apps/v1", "Deployment", "web").namespace("shop").spec(json!({
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template(image),
    }))
}

/// A ReplicaSet of that Deployment, sized for `desired` replicas, all of its own available.
pub fn replica_set(name: &str, image: &str, replicas: i64, desired: i64) -> Builder {
    let mut template = template(image);
    template["metadata"]["labels"]["pod-template-hash"] = json!(name);
    object("apps/v1", "ReplicaSet", name)
        .namespace("shop")
        .label("app", "web")
        .label("pod-template-hash", name)
        .annotation("deployment.kubernetes.io/desired-replicas", &desired.to_string())
        .annotation("deployment.kubernetes.io/max-replicas", &(desired + 1).to_string())
        .with(
            "/metadata/ownerReferences",
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                "uid": "uid-deployment-web", "controller": true, "blockOwnerDeletion": true}]),
        )
        .spec(json!({
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web", "pod-template-hash": name}},
            "template": template,
        }))
        .status(json!({
            "replicas": replicas, "fullyLabeledReplicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas, "terminatingReplicas": 0, "observedGeneration": 1,
        }))
}

/// A pod of a ReplicaSet, ready since the given instant.
pub fn replica(name: &str, set: &str, ready_since: &str) -> Builder {
    object("v1", "Pod", name)
        .namespace("shop")
        .label("app", "web")
        .label("pod-template-hash", set)
        .with(
            "/metadata/ownerReferences",
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set,
                "uid": format!("uid-replicaset-{set}"), "controller": true}]),
        )
        .spec(json!({"nodeName": "n1", "containers": []}))
        .status(json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": ready_since},
        ]}))
}
