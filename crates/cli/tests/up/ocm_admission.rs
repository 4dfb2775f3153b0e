//! What is refused, filled in and warned about before objects of Open Cluster Management are
//! stored: by the embedded server itself, and by the webhooks that `convoy run` serves.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::access::Access;
use crate::home::{control_loop, define, start};
use crate::running::Running;

fn cluster(name: &str, spec: &Value) -> String {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name}, "spec": spec})
    .to_string()
}

const SEED: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: seed, namespace: default}
spec:
  DecisionStrategy:
    DecisionGroups:
    - GroupName: west
      clusterSelector: {matchExpressions: [{key: west, operator: Exist}]}
";

const BINDING: &str = "apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: default}
spec: {clusterSet: other}
";

/// What upstream's suite asks of its webhooks, in both homes.
fn the_rules_hold(access: &Access) {
    let plain = json!({"managedClusterClientConfigs": [{"url": "http://127.0.0.1:8001"}]});
    let refused = access.refused("create -f -", &cluster("eu", &plain));
    assert!(
        refused.contains(
            "admission webhook \"managedclustervalidators.admission.cluster.open-cluster-\
             management.io\" denied the request: url \"http://127.0.0.1:8001\" is invalid in \
             client configs"
        ),
        "{refused}"
    );
    let tainted = json!({"taints": [{"key": "a", "effect": "NoSelect"}]});
    access.kubectl_with("create -f -", &cluster("eu", &tainted));
    let stored = access.get("managedcluster eu");
    let set = "cluster.open-cluster-management.io/clusterset";
    assert_eq!(stored["metadata"]["labels"][set], "default");
    assert!(stored["spec"]["taints"][0]["timeAdded"].is_string(), "{stored:#}");
    let forged = r#"{"spec":{"taints":[{"key":"b","effect":"NoSelect","timeAdded":"2026-01-01T00:00:00Z"}]}}"#;
    let forged = format!("patch managedcluster eu --type=merge -p {forged}");
    let refused = access.refused(&forged, "");
    assert!(refused.contains("It is not allowed to set TimeAdded of Taint \"b\"."), "{refused}");
    let refused = access.refused("create -f -", BINDING);
    assert!(refused.contains("must have the same name as the target"), "{refused}");
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "empty", "namespace": "default"}, "spec": {}});
    let refused = access.refused("create -f -", &work.to_string());
    assert!(refused.contains("manifests should not be empty"), "{refused}");
    // Old spellings are stored as they are, and told.
    let told = access.try_kubectl("create -f -", SEED);
    let told = String::from_utf8(told.stderr).unwrap();
    for (field, now) in [
        ("spec.DecisionStrategy", "decisionStrategy"),
        ("spec.DecisionStrategy.DecisionGroups", "groupStrategy.decisionGroups"),
        ("spec.DecisionStrategy.DecisionGroups[0].GroupName", "groupName"),
    ] {
        let line = format!("Warning: {field}: old spelling, read as: {now}\n");
        assert!(told.contains(&line), "{line}{told}");
    }
    assert!(told.contains("operator: old spelling, read as: Exists"), "{told}");
    let stored = access.get("placement seed -n default");
    let group = &stored["spec"]["DecisionStrategy"]["DecisionGroups"][0];
    assert_eq!(group["GroupName"], "west", "{stored:#}");
}

/// Somebody who may write clusters and works, and nothing else.
fn rights_are_asked_for(access: &Access) {
    let role = "create clusterrole editor --verb=create,get,list \
        --resource=managedclusters.cluster.open-cluster-management.io,\
        manifestworks.work.open-cluster-management.io";
    access.kubectl(&role.replace(",        ", ","));
    access.kubectl("create clusterrolebinding editor --clusterrole=editor --user=ann");
    let accepted = cluster("us", &json!({"hubAcceptsClient": true}));
    let refused = access.refused("--as=ann create -f -", &accepted);
    assert!(refused.contains("user \"ann\" cannot update the HubAcceptsClient field"), "{refused}");
    let refused = access.refused("--as=ann create -f -", &cluster("us", &json!({})));
    let joined = "user \"ann\" cannot add/remove a ManagedCluster to/from ManagedClusterSet";
    assert!(refused.contains(joined), "{refused}");
    let executor = json!({"subject": {"type": "ServiceAccount",
        "serviceAccount": {"namespace": "ops", "name": "deployer"}}});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default"}});
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "as-other", "namespace": "default"},
        "spec": {"workload": {"manifests": [config]}, "executor": executor}});
    let refused = access.refused("--as=ann create -f -", &work.to_string());
    assert!(
        refused.contains("user ann cannot manipulate the Manifestwork with executor ops/deployer"),
        "{refused}"
    );
    access.kubectl_with("create -f -", &work.to_string());
}

#[test]
fn the_embedded_server_has_the_rules_of_ocm_built_in() {
    let home = Running::start();
    define(&home, "ocm");
    the_rules_hold(&home);
    rights_are_asked_for(&home);
}

#[test]
fn rules_of_ocm_can_be_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let home = Running::start_in(directory.path(), &["--ocm-parts", "placement"]);
    define(&home, "ocm");
    home.kubectl_with("create -f -", &cluster("eu", &json!({})));
    assert!(home.get("managedcluster eu")["metadata"]["labels"].is_null());
}

#[test]
fn webhooks_of_ocm_are_served_and_registered() {
    let directory = tempfile::tempdir().unwrap();
    let home = Running::start_in(directory.path(), &["--skip-admission"]);
    define(&home, "ocm");
    home.kubectl("create namespace open-cluster-management-hub");
    let place = convoy_kubernetes::Running::new("ocm-webhooks").unwrap();
    let mut command = control_loop(&home.kubeconfig, "ocm");
    command.args(["--webhook-listen=127.0.0.1:0", "--webhook-host=127.0.0.1", "--ocm-parts"]);
    command.args(["placement,admission", "--webhook-namespace=open-cluster-management-hub"]);
    let _convoy = start(&place, &mut command).0;
    let begun = Instant::now();
    let plain = json!({"managedClusterClientConfigs": [{"url": "http://a"}]});
    loop {
        let output = home.try_kubectl("create --dry-run=server -f -", &cluster("x", &plain));
        if !output.status.success() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "the server does not ask");
        std::thread::sleep(Duration::from_millis(100));
    }
    the_rules_hold(&home);
    rights_are_asked_for(&home);
    let registered = home.kubectl("get validatingwebhookconfigurations -o name");
    assert!(registered.contains("convoy-ocm-warnings"), "{registered}");
}
