//! Rollouts to member clusters: a placement of KubeFleet and a replica set of Open Cluster
//! Management.

use serde_json::json;

use super::Case;
use crate::running::Running;

/// A pod takes 4.7 s to become available.
const LATENCIES: &str = "
latencies: {pull: 3s, start: 200ms, ready: 1500ms, stop: 200ms}
memberClusters: [{name: '*', nodes: 1}]
";

fn shop() -> [serde_json::Value; 2] {
    let labels = json!({"app": "web"});
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "example/web:1"}]}}}}),
    ]
}

#[test]
fn a_placement_takes_as_long_as_was_simulated() {
    let placement = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "ClusterResourcePlacement", "metadata": {"name": "shop"},
        "spec": {"policy": {"placementType": "PickAll"}, "resourceSelectors":
            [{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}]}});
    let case = Case {
        flags: &["--members", "2", "--controllers", "fleet"],
        nodes: "[]",
        latencies: LATENCIES,
        prepare: &|running| {
            running.kubectl("wait --for=condition=Joined memberclusters --all --timeout=60s");
            for object in shop() {
                running.kubectl_with("apply -f -", &object.to_string());
            }
        },
        change: placement.to_string(),
        kind: "placement.kubernetes-fleet.io/ClusterResourcePlacement/",
        wait: &|running: &Running| {
            let available = "wait --for=condition=ClusterResourcePlacementAvailable";
            running.kubectl(&format!("{available} clusterresourceplacement/shop --timeout=120s"));
        },
    };
    case.agrees();
}

/// Two clusters after each other: each has to be through before the next one starts.
#[test]
fn a_replica_set_takes_as_long_as_was_simulated() {
    let is_moving = "!has(object.status.availableReplicas) || \
                     object.status.availableReplicas < object.spec.replicas";
    let rule = json!({"condition": "Progressing", "type": "CEL", "celExpressions": [is_moving]});
    let config = json!({"resourceIdentifier": {"group": "apps", "resource": "deployments",
        "namespace": "shop", "name": "web"}, "conditionRules": [rule]});
    let set = json!({"apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet", "metadata": {"name": "web", "namespace": "apps"},
        "spec": {
            "manifestWorkTemplate": {"workload": {"manifests": shop()}, "manifestConfigs": [config]},
            "placementRefs": [{"name": "all", "rolloutStrategy":
                {"type": "Progressive", "progressive": {"maxConcurrency": 1}}}]}});
    let before = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}},
        {"apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding", "metadata": {"name": "global", "namespace": "apps"},
            "spec": {"clusterSet": "global"}},
        {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "all", "namespace": "apps"}, "spec": {}}]});
    let case = Case {
        flags: &["--members", "2", "--controllers", "ocm"],
        nodes: "[]",
        latencies: LATENCIES,
        prepare: &|running| {
            let available = "wait --for=condition=ManagedClusterConditionAvailable";
            running.kubectl(&format!("{available} managedclusters --all --timeout=60s"));
            running.kubectl_with("apply -f -", &before.to_string());
            running.until("placement all -n apps", |placement| {
                placement["status"]["numberOfSelectedClusters"] == 2
            });
        },
        change: set.to_string(),
        kind: "work.open-cluster-management.io/ManifestWorkReplicaSet/",
        wait: &|running: &Running| {
            let rolled_out = "wait --for=condition=PlacementRolledOut mwrs/web -n apps";
            running.kubectl(&format!("{rolled_out} --timeout=120s"));
        },
    };
    case.agrees();
}
