//! Node pools, claims and nodes.

use convoy_api::Object;
use serde_json::{Value, json};

use crate::{Builder, node, object};

/// Since when the nodes of tests are up.
const UP_SINCE: &str = "2025-12-31T00:00:00Z";

/// The hash of the template that [`pool`] has.
pub const HASH: &str = "7428780003907761376";

/// A pool whose nodes never expire, with these disruption settings.
pub fn pool(name: &str, disruption: &Value) -> Builder {
    object("karpenter.sh/v1", "NodePool", name)
        .annotation("karpenter.sh/nodepool-hash", HASH)
        .annotation("karpenter.sh/nodepool-hash-version", "v3")
        .spec(json!({
            "template": {"spec": {"requirements": [], "expireAfter": "Never", "nodeClassRef":
                {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}},
            "disruption": disruption,
        }))
}

/// The node class that [`pool`] and [`claim`] name.
pub fn node_class() -> Builder {
    object("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "default")
}

/// A condition that has been True since the node came up.
pub fn is(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": kind, "message": "",
        "lastTransitionTime": UP_SINCE})
}

/// A claim that is launched, registered and initialized.
pub fn claim(pool: &str, name: &str) -> Builder {
    let conditions =
        ["Launched", "Registered", "Initialized", "ConsistentStateFound", "Ready"].map(is);
    placed(object("karpenter.sh/v1", "NodeClaim", name), pool)
        .annotation("karpenter.sh/nodepool-hash", HASH)
        .annotation("karpenter.sh/nodepool-hash-version", "v3")
        .created_at(UP_SINCE)
        .with("/metadata/finalizers", json!(["karpenter.sh/termination"]))
        .spec(json!({"requirements": [], "expireAfter": "Never", "nodeClassRef":
            {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}))
        .status(json!({
            "nodeName": name, "providerID": format!("kwok://{name}"), "allocatable": room(),
            "conditions": conditions,
        }))
}

/// The Node of a claim; it bears the claim's name.
pub fn node_of(pool: &str, name: &str) -> Builder {
    placed(node(name), pool)
        .label("karpenter.sh/registered", "true")
        .label("karpenter.sh/initialized", "true")
        .label("kubernetes.io/hostname", name)
        .with("/metadata/finalizers", json!(["karpenter.sh/termination"]))
        .with("/spec/providerID", json!(format!("kwok://{name}")))
        .with("/status/allocatable", room())
}

/// A claim and its Node.
pub fn pair(pool: &str, name: &str) -> [Object; 2] {
    [claim(pool, name).build(), node_of(pool, name).build()]
}

/// A pod of a ReplicaSet that runs on a node.
pub fn pod(name: &str, node: &str, cpu: &str) -> Builder {
    object("v1", "Pod", name)
        .namespace("default")
        .label("app", "web")
        .with(
            "/metadata/ownerReferences",
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "name": "web", "uid": "rs", "controller": true}]),
        )
        .spec(json!({"nodeName": node, "containers":
            [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]}))
        .status(json!({"phase": "Running", "startTime": UP_SINCE}))
}

fn placed(builder: Builder, pool: &str) -> Builder {
    builder
        .label("karpenter.sh/nodepool", pool)
        .label("karpenter.kwok.sh/kwoknodeclass", "default")
        .label("karpenter.sh/capacity-type", "on-demand")
        .label("node.kubernetes.io/instance-type", "s-4x-amd64-linux")
        .label("topology.kubernetes.io/zone", "test-zone-a")
        .label("kubernetes.io/arch", "amd64")
        .label("kubernetes.io/os", "linux")
}

fn room() -> Value {
    json!({"cpu": "3900m", "memory": "16374Mi", "pods": "64", "ephemeral-storage": "20Gi"})
}
