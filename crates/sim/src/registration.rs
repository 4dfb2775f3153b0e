//! How member clusters are registered with their hubs: as users would do it.

use std::collections::BTreeMap;

use convoy_api::ocm::names::{CLUSTER_SET_LABEL, DEFAULT_CLUSTER_SET};
use convoy_plan::dialect::fleet::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

/// A member of KubeFleet.
pub fn member_cluster(name: &str, labels: &BTreeMap<String, String>, heartbeat_secs: u32) -> Value {
    let identity = json!({"kind": "ServiceAccount", "apiGroup": "",
        "namespace": SYSTEM_NAMESPACE, "name": name});
    json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"identity": identity, "heartbeatPeriodSeconds": heartbeat_secs}})
}

/// A cluster of Open Cluster Management, accepted. The set `global` has every cluster.
pub fn managed_cluster(name: &str, mut labels: BTreeMap<String, String>) -> Value {
    labels.entry(CLUSTER_SET_LABEL.to_owned()).or_insert_with(|| DEFAULT_CLUSTER_SET.to_owned());
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60}})
}
