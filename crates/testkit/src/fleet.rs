//! Fleet objects: placements, clusters, snapshots, bindings, update runs.

use serde_json::{Value, json};

use crate::{Builder, object};

const PLACEMENT: &str = "placement.kubernetes-fleet.io/v1beta1";
const CLUSTER: &str = "cluster.kubernetes-fleet.io/v1beta1";

/// A placement of the namespace `shop`, with the finalizers that its controllers put on it.
pub fn placement(name: &str, policy: Value) -> Builder {
    let selector = json!({"group": "", "version": "v1", "kind": "Namespace", "name": "shop"});
    object(PLACEMENT, "ClusterResourcePlacement", name)
        .with(
            "/metadata/finalizers",
            json!(["kubernetes-fleet.io/crp-cleanup", "kubernetes-fleet.io/scheduler-cleanup"]),
        )
        .spec(json!({"resourceSelectors": [selector], "policy": policy}))
}

/// A cluster that joined, is healthy, and sent a heartbeat just before `now`.
pub fn member(name: &str, now: &str) -> Builder {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2025-12-01T00:00:00Z"})
    };
    object(CLUSTER, "MemberCluster", name)
        .label("kubernetes-fleet.io/member-name", name)
        .spec(json!({"heartbeatPeriodSeconds": 60, "identity": {"kind": "ServiceAccount",
            "name": format!("agent-{name}"), "namespace": "fleet-system", "apiGroup": ""}}))
        .status(json!({"agentStatus": [{"type": "MemberAgent", "lastReceivedHeartbeat": now,
            "conditions": [condition("Joined"), condition("Healthy")]}]}))
}

/// The master snapshot of an index, holding `resources`.
pub fn resource_snapshot(
    placement: &str,
    index: u32,
    latest: bool,
    resources: &[Value],
) -> Builder {
    let name = format!("{placement}-{index}-snapshot");
    object(PLACEMENT, "ClusterResourceSnapshot", &name)
        .label("kubernetes-fleet.io/parent-CRP", placement)
        .label("kubernetes-fleet.io/is-latest-snapshot", &latest.to_string())
        .label("kubernetes-fleet.io/resource-index", &index.to_string())
        .annotation("kubernetes-fleet.io/resource-hash", &format!("hash-{index}"))
        .annotation("kubernetes-fleet.io/number-of-resource-snapshots", "1")
        .spec(json!({"selectedResources": resources}))
}

/// A binding of a cluster, carrying the default apply strategy.
pub fn binding(placement: &str, cluster: &str, state: &str, resource_snapshot: &str) -> Builder {
    object(PLACEMENT, "ClusterResourceBinding", &format!("{placement}-{cluster}"))
        .label("kubernetes-fleet.io/parent-CRP", placement)
        .with("/metadata/finalizers", json!(["kubernetes-fleet.io/work-cleanup"]))
        .spec(json!({"state": state, "resourceSnapshotName": resource_snapshot,
            "schedulingPolicySnapshotName": format!("{placement}-0"), "targetCluster": cluster,
            "clusterDecision": {"clusterName": cluster, "selected": true, "reason": "picked"},
            "applyStrategy": {"type": "ClientSideApply", "comparisonOption": "PartialComparison",
                "whenToApply": "Always", "whenToTakeOver": "Always"}}))
}

/// A condition of a binding.
pub fn condition(kind: &str, status: &str, reason: &str, generation: i64, since: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "",
        "observedGeneration": generation, "lastTransitionTime": since})
}

/// An update strategy with these stages.
pub fn strategy(name: &str, stages: Value) -> Builder {
    object(PLACEMENT, "ClusterStagedUpdateStrategy", name).spec(json!({"stages": stages}))
}

/// An update run in state Run; an empty `index` takes what is selected now.
pub fn run(name: &str, placement: &str, strategy: &str, index: &str) -> Builder {
    object(PLACEMENT, "ClusterStagedUpdateRun", name).spec(json!({"placementName": placement,
        "resourceSnapshotIndex": index, "stagedRolloutStrategyName": strategy, "state": "Run"}))
}
