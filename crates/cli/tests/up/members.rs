//! A hub and its member clusters in one process, met with stock kubectl.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::running::{Running, command};

const PLACEMENT: &str = "apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
";

/// Waits until a command prints something.
fn until(hub: &Running, arguments: &str, wanted: &str) -> String {
    let begun = Instant::now();
    loop {
        let output = hub.try_kubectl(arguments, "");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() && text.contains(wanted) {
            return text;
        }
        if begun.elapsed() > Duration::from_mins(1) {
            let placement = hub.kubectl("get clusterresourceplacement,work -A -o yaml");
            panic!("kubectl {arguments}: {output:?}\n{placement}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn place(hub: &Running) {
    hub.kubectl("create namespace shop");
    hub.kubectl("create configmap settings -n shop --from-literal=a=b");
    hub.kubectl("create deployment web -n shop --image=web:v1");
    hub.kubectl_with("apply -f -", PLACEMENT);
}

#[test]
fn a_hub_places_resources_on_its_members() {
    let directory = tempfile::tempdir().unwrap();
    let labels = "env=prod,member-2:region=eu";
    let flags = ["--members", "2", "--member-nodes", "1", "--member-labels", labels];
    let mut hub = Running::start_as(command(directory.path()).args(flags));
    let labelled =
        |selector: &str| hub.kubectl(&format!("get memberclusters -l {selector} -o name"));
    assert_eq!(labelled("env=prod").lines().count(), 2);
    assert_eq!(labelled("env=prod,region=eu").trim_end().rsplit('/').next(), Some("member-2"));
    hub.kubectl("wait --for=condition=Joined memberclusters --all --timeout=60s");
    place(&hub);
    for member in ["member-1", "member-2"] {
        let nodes = hub.kubectl(&format!("--context convoy-{member} get nodes -o name"));
        assert_eq!(nodes.lines().count(), 1, "{nodes}");
        let copied = format!("--context convoy-{member} get configmap settings -n shop -o name");
        until(&hub, &copied, "settings");
        // The member runs what it is given, and the hub does not.
        let rolled = "rollout status deployment/web -n shop --timeout=60s";
        hub.kubectl(&format!("--context convoy-{member} {rolled}"));
    }
    assert_eq!(hub.kubectl("get pods -n shop -o name"), "");
    let conditions = "get clusterresourceplacement shop -o \
        jsonpath={.status.conditions[?(@.status==\"True\")].type}";
    until(&hub, conditions, "ClusterResourcePlacementAvailable");
    // A change of what is selected is noticed, and so is one on a member.
    hub.kubectl("create service clusterip web -n shop --tcp=80");
    until(&hub, "--context convoy-member-2 get service web -n shop -o name", "web");
    hub.kubectl("--context convoy-member-1 delete configmap settings -n shop");
    until(&hub, "--context convoy-member-1 get configmap settings -n shop -o name", "settings");
    hub.kubectl("delete clusterresourceplacement shop --timeout=60s");
    let gone = hub.refused("--context convoy-member-1 get configmap settings -n shop", "");
    assert!(gone.contains("NotFound"), "{gone}");
    assert_eq!(hub.end("TERM"), Some(0));
}

/// A process that ends with the test.
struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn an_agent_joins_two_servers() {
    let directory = tempfile::tempdir().unwrap();
    let hub = Running::start_in(&directory.path().join("hub"), &["--controllers", "fleet"]);
    let member = Running::start_in(&directory.path().join("member"), &[]);
    let definitions = hub.convoy("crds --dialect fleet").stdout;
    let definitions = String::from_utf8(definitions).unwrap();
    for server in [&hub, &member] {
        server.kubectl_with("apply --server-side -f -", &definitions);
    }
    let registered = "apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: far}
spec: {identity: {kind: User, name: far, apiGroup: rbac.authorization.k8s.io}}
";
    hub.kubectl_with("apply -f -", registered);
    member.kubectl("create namespace convoy-system");
    let agent = Command::new(env!("CARGO_BIN_EXE_convoy"))
        .args(["agent", "--cluster", "far", "--hub-kubeconfig"])
        .arg(&hub.kubeconfig)
        .arg("--member-kubeconfig")
        .arg(&member.kubeconfig)
        .args(["--leader-elect", "--lease-duration=3"])
        .spawn();
    let _agent = Agent(agent.unwrap());
    hub.kubectl("wait --for=condition=Joined membercluster/far --timeout=60s");
    place(&hub);
    until(&member, "get configmap settings -n shop -o name", "settings");
    // Only the replica that holds the Lease acts, and the Lease is on the member.
    let holder = "get lease convoy-agent -n convoy-system -o jsonpath={.spec.holderIdentity}";
    assert_ne!(member.kubectl(holder), "");
}
