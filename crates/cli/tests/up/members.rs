//! A hub and its member clusters in one process, met with stock kubectl. The test plays the agents
//! of the members.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;

use crate::running::{Running, command};

/// The agent of a member reports that it has joined.
fn join(hub: &Running, member: &str) {
    let (home, now) =
        (format!("fleet-member-{member}"), Timestamp::now().strftime("%FT%TZ").to_string());
    until(hub, &format!("get internalmembercluster {member} -n {home} -o name"), member);
    let condition = |name: &str, reason: &str| {
        json!({"type": name, "status": "True", "reason": reason, "message": "",
            "observedGeneration": 1, "lastTransitionTime": now})
    };
    let agent = json!({"type": "MemberAgent", "lastReceivedHeartbeat": now, "conditions": [
        condition("Joined", "InternalMemberClusterJoined"),
        condition("Healthy", "InternalMemberClusterHealthy")]});
    let status = json!({"status": {"agentStatus": [agent]}}).to_string();
    let patch = format!(
        "patch internalmembercluster {member} -n {home} --subresource=status --type=merge -p '{status}'"
    );
    hub.kubectl(&patch);
}

/// Waits until a command prints something.
fn until(hub: &Running, arguments: &str, wanted: &str) -> String {
    let begun = Instant::now();
    loop {
        let output = hub.try_kubectl(arguments, "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() && text.contains(wanted) {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "kubectl {arguments}: {output:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_hub_places_resources_on_its_members() {
    let directory = tempfile::tempdir().unwrap();
    let flags =
        ["--members", "2", "--member-nodes", "1", "--member-labels", "env=prod,member-2:region=eu"];
    let mut hub = Running::start_as(command(directory.path()).args(flags));
    let labels = hub.kubectl("get memberclusters -o jsonpath={.items[*].metadata.labels}");
    assert_eq!(labels, r#"{"env":"prod"} {"env":"prod","region":"eu"}"#);
    for member in ["member-1", "member-2"] {
        let nodes = hub.kubectl(&format!("--context convoy-{member} get nodes -o name"));
        assert_eq!(nodes.lines().count(), 1, "{nodes}");
        join(&hub, member);
        hub.kubectl(&format!("wait --for=condition=Joined membercluster/{member} --timeout=30s"));
    }
    // A member runs workloads, and the hub knows nothing of them.
    hub.kubectl("--context convoy-member-1 create deployment web --image=web:v1");
    hub.kubectl("--context convoy-member-1 rollout status deployment/web --timeout=60s");
    hub.refused("get deployment web", "");

    hub.kubectl("create namespace shop");
    hub.kubectl("create configmap settings -n shop --from-literal=a=b");
    let placement = "apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
";
    hub.kubectl_with("apply -f -", placement);
    let selected =
        "get clusterresourcesnapshots -o jsonpath={.items[*].spec.selectedResources[*].kind}";
    until(&hub, selected, "Namespace ConfigMap");
    let bound = "get clusterresourcebindings -o jsonpath={.items[*].spec.targetCluster}";
    until(&hub, &format!("{bound} --sort-by=.spec.targetCluster"), "member-1 member-2");
    until(
        &hub,
        "get clusterresourceplacement shop -o jsonpath={.status.conditions[*].type}",
        "Scheduled",
    );
    // A change is noticed without anybody asking.
    hub.kubectl("create service clusterip web -n shop --tcp=80");
    until(&hub, selected, "Service");
    assert_eq!(hub.end("TERM"), Some(0));
    // Members and their registration persist.
    let again = Running::start_as(command(directory.path()).args(flags));
    again.kubectl("get clusterresourceplacement shop");
}
