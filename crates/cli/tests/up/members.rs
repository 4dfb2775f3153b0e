//! A hub and its member clusters in one process, met with stock kubectl.

use std::process::{Child, Command};

use crate::running::{Running, command};

const PLACEMENT: &str = "apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
  strategy: {deleteStrategy: {propagationPolicy: Delete}}
";

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
    let all_fields = "clusterresourceplacements.v1beta1.placement.kubernetes-fleet.io shop";
    let is_guarded = |placement: &serde_json::Value| placement["metadata"]["finalizers"].is_array();
    let placement = hub.until(all_fields, is_guarded);
    let strategy = &placement["spec"]["strategy"];
    assert_eq!(strategy["deleteStrategy"]["propagationPolicy"], "Delete", "{strategy}");
    for member in ["member-1", "member-2"] {
        let nodes = hub.kubectl(&format!("--context convoy-{member} get nodes -o name"));
        assert_eq!(nodes.lines().count(), 1, "{nodes}");
        let copied = format!("--context convoy-{member} get configmap settings -n shop -o name");
        hub.until_prints(&copied, "settings");
        // The member runs what it is given, and the hub does not.
        let rolled = "rollout status deployment/web -n shop --timeout=60s";
        hub.kubectl(&format!("--context convoy-{member} {rolled}"));
    }
    assert_eq!(hub.kubectl("get pods -n shop -o name"), "");
    let conditions = "get clusterresourceplacement shop -o \
        jsonpath={.status.conditions[?(@.status==\"True\")].type}";
    hub.until_prints(conditions, "ClusterResourcePlacementAvailable");
    // A change of what is selected is noticed, and so is one on a member.
    hub.kubectl("create service clusterip web -n shop --tcp=80");
    hub.until_prints("--context convoy-member-2 get service web -n shop -o name", "web");
    hub.kubectl("--context convoy-member-1 delete configmap settings -n shop");
    hub.until_prints(
        "--context convoy-member-1 get configmap settings -n shop -o name",
        "settings",
    );
    hub.kubectl("delete clusterresourceplacement shop --timeout=60s");
    let gone = hub.refused("--context convoy-member-1 get configmap settings -n shop", "");
    assert!(gone.contains("NotFound"), "{gone}");
    assert_eq!(hub.end("TERM"), Some(0));
}

#[test]
fn members_have_profiles_and_report_their_namespaces() {
    let directory = tempfile::tempdir().unwrap();
    let collection = "--enable-namespace-collection-in-property-provider";
    let flags = ["--members=1", "--member-nodes=1", "--property-provider=kubernetes", collection];
    let mut hub = Running::start_as(command(directory.path()).args(flags));
    let is_told = |profile: &serde_json::Value| profile["status"]["accessProviders"].is_array();
    hub.until_prints("get clusterprofiles -n fleet-system -o name", "member-1");
    let profile = hub.until("clusterprofile member-1 -n fleet-system", is_told);
    let status = &profile["status"];
    assert!(status["version"]["kubernetes"].as_str().unwrap().starts_with("v1."), "{status}");
    let access = &status["accessProviders"][0]["cluster"];
    assert_eq!(access["server"], format!("{}/clusters/member-1", hub.url));
    assert!(access["certificate-authority-data"].as_str().unwrap().len() > 100, "{access}");
    let healthy = "wait --for=condition=ControlPlaneHealthy clusterprofile/member-1 \
        -n fleet-system --timeout=60s";
    hub.kubectl(healthy);
    // In v1 there is no such field.
    let member = hub.get("memberclusters.v1beta1.cluster.kubernetes-fleet.io member-1");
    assert_eq!(member["status"]["namespaces"]["kube-system"], "", "{}", member["status"]);
    hub.kubectl("delete membercluster member-1 --timeout=60s");
    assert_eq!(hub.kubectl("get clusterprofiles -n fleet-system -o name"), "");
    assert_eq!(hub.end("TERM"), Some(0));
}

#[test]
fn clusters_are_named_sized_and_labelled_as_asked() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = directory.path().join("scenario.yaml");
    let rules = "memberClusters: [{name: 'west-*', labels: {region: west, tier: gold}}]\n";
    std::fs::write(&scenario, rules).unwrap();
    let mut up = command(&directory.path().join("data"));
    up.args(["--member-names", "west-2,east-1", "--member-nodes", "2,1", "--context-prefix="]);
    up.args(["--context", "hub", "--member-labels", "tier=basic", "--scenario"]).arg(&scenario);
    let mut hub = Running::start_as(&mut up);
    let contexts = hub.kubectl("config get-contexts -o name");
    assert_eq!(contexts.lines().collect::<Vec<_>>(), ["east-1", "hub", "west-2"]);
    let count = |context: &str| {
        hub.kubectl(&format!("--context {context} get nodes -o name")).lines().count()
    };
    assert_eq!(["hub", "west-2", "east-1"].map(count), [0, 2, 1]);
    let western = hub.kubectl("get memberclusters -l region=west,tier=basic -o name");
    assert_eq!(western.lines().count(), 1);
    // A cluster that somebody else runs is registered and left alone.
    let other = "apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: other}
spec: {identity: {kind: User, name: other, apiGroup: rbac.authorization.k8s.io}}
";
    hub.kubectl_with("apply -f -", other);
    hub.kubectl("wait --for=condition=ReadyToJoin membercluster/other --timeout=60s");
    hub.kubectl("wait --for=condition=Joined membercluster/west-2 --timeout=60s");
    let internal = "get internalmembercluster other -n fleet-member-other -o jsonpath={.status}";
    assert_eq!(hub.kubectl(internal), "");
    let listed = hub.convoy("clusters list -o json").stdout;
    let listed = String::from_utf8(listed).unwrap();
    assert!(listed.contains(r#""context": "west-2""#) && !listed.contains("other"), "{listed}");
    assert_eq!(hub.end("TERM"), Some(0));
}

/// An agent in a process of its own, which ends with the test.
pub(crate) struct Agent(Child);

impl Agent {
    /// Starts the agent of the cluster `far` between two servers.
    pub(crate) fn start(hub: &Running, member: &Running, flags: &[&str]) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_convoy"))
            .args(["agent", "--cluster", "far", "--hub-kubeconfig"])
            .arg(&hub.kubeconfig)
            .arg("--member-kubeconfig")
            .arg(&member.kubeconfig)
            .args(flags)
            .spawn();
        Self(process.unwrap())
    }
}

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
    let _agent = Agent::start(&hub, &member, &["--leader-elect", "--lease-duration=3"]);
    hub.kubectl("wait --for=condition=Joined membercluster/far --timeout=60s");
    place(&hub);
    member.until_prints("get configmap settings -n shop -o name", "settings");
    // Only the replica that holds the Lease acts, and the Lease is on the member.
    let holder = "get lease convoy-agent -n convoy-system -o jsonpath={.spec.holderIdentity}";
    assert_ne!(member.kubectl(holder), "");
}
