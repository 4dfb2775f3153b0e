//! Members that are offline, come and go, or refuse writes, as a scenario has it: each is told
//! where a person looks first, and none holds up the others.

use crate::running::{Running, command};

const PLACEMENT: &str = "apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 100%}}
";

const EVENTS: &str = "memberClusterEvents:
- {cluster: member-2, at: 0s, event: flapping, every: 2s}
- {cluster: member-3, at: 0s, event: slow, delay: 200ms}
- {cluster: member-4, at: 0s, event: forbidden, resource: configmaps}
- {cluster: member-5, at: 0s, event: offline}
- {cluster: member-6, at: 0s, event: hub-unreachable}
";

#[test]
fn members_in_trouble_are_told_and_hold_up_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = directory.path().join("scenario.yaml");
    std::fs::write(&scenario, EVENTS).unwrap();
    let mut up = command(&directory.path().join("data"));
    up.args(["--members=6", "--member-nodes=1", "--scenario"]).arg(&scenario);
    let mut hub = Running::start_as(&mut up);
    for member in ["member-1", "member-2", "member-3", "member-4"] {
        hub.kubectl(&format!("wait --for=condition=Joined membercluster/{member} --timeout=60s"));
    }
    hub.kubectl("create namespace shop");
    hub.kubectl("create configmap settings -n shop --from-literal=a=b");
    hub.kubectl_with("apply -f -", PLACEMENT);
    for member in ["member-1", "member-2", "member-3"] {
        let copied = format!("--context convoy-{member} get configmap settings -n shop -o name");
        hub.until_prints(&copied, "settings");
        let path = "jsonpath={.status.conditions[?(@.status==\"True\")].type}";
        let work = format!("get work shop-work -n fleet-member-{member} -o {path}");
        hub.until_prints(&work, "Available");
    }
    let refusal = "configmaps is forbidden: the scenario refuses writes to this cluster";
    let failed = "get clusterresourceplacement shop -o jsonpath={.status.placementStatuses\
        [?(@.clusterName==\"member-4\")].failedPlacements[*].condition.message}";
    hub.until_prints(failed, refusal);
    let warnings = |member: &str| {
        let of_type = "--field-selector type=Warning -o jsonpath={.items[*].message}";
        format!("get events -n fleet-member-{member} {of_type}")
    };
    hub.until_prints(&warnings("member-4"), refusal);
    hub.until_prints(&warnings("member-2"), "the scenario interrupts this connection");
    // Nobody has heard of the agents that reach only one of their two servers.
    for member in ["member-5", "member-6"] {
        let joined = "jsonpath={.status.conditions[?(@.type==\"Joined\")].status}";
        let printed = hub.kubectl(&format!("get membercluster {member} -o {joined}"));
        assert_eq!(printed, "Unknown", "{member}");
    }
    assert_eq!(hub.end("TERM"), Some(0));
}
