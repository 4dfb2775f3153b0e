//! Open Cluster Management on a real API server, with the accounts of `deploy/ocm` and
//! `deploy/ocm-agent`.

use std::sync::OnceLock;

use convoy_kubernetes::Process;
use serde_json::{Value, json};

use crate::access::Access;
use crate::home::{MANAGED, real_with_ocm};

/// The hub, started once for all tests.
pub(crate) fn hub() -> &'static Access {
    static HUB: OnceLock<(Access, Vec<Process>)> = OnceLock::new();
    let (access, _) = HUB.get_or_init(real_with_ocm);
    let available = "wait --for=condition=ManagedClusterConditionAvailable managedcluster --all";
    access.kubectl(&format!("{available} --timeout=60s"));
    access
}

fn rollout(value: &str) -> String {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "wares"}});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "wares"}, "data": {"mode": value}});
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let objects = json!([
        {"apiVersion": "cluster.open-cluster-management.io/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "global", "namespace": "default"}, "spec": {"clusterSet": "global"}},
        {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": "all", "namespace": "default"}, "spec": {}},
        {"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
            "metadata": {"name": "wares", "namespace": "default"},
            "spec": {"manifestWorkTemplate": {"workload": {"manifests": [namespace, config]}},
                "placementRefs": [{"name": "all", "rolloutStrategy": strategy}]}},
    ]);
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

#[test]
fn a_replica_set_is_rolled_out_and_goes_with_least_rights() {
    let hub = hub();
    hub.kubectl_with("apply -f -", &rollout("a"));
    let is_available = |set: &Value| set["status"]["summary"]["available"] == 1;
    hub.until("mwrs wares -n default", is_available);
    hub.kubectl("wait --for=condition=PlacementRolledOut mwrs/wares -n default --timeout=60s");
    hub.kubectl_with("apply -f -", &rollout("b"));
    hub.until("configmap settings -n wares", |config| config["data"]["mode"] == "b");
    hub.kubectl("delete mwrs wares -n default --timeout=60s");
    let is_none = |list: &Value| list["items"].as_array().is_some_and(Vec::is_empty);
    hub.until(&format!("manifestworks -n {MANAGED}"), is_none);
    hub.until("appliedmanifestworks", is_none);
}
