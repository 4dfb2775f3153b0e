//! Open Cluster Management's hub, met with stock kubectl: the seed's placements over 320 clusters,
//! the life of a managed cluster, a ManifestWorkReplicaSet with mandatory canaries.

use std::fmt::Write as _;

use serde_json::Value;

use crate::running::{Running, command};

const PLACEMENT: &str = "apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: ztp-placement, namespace: ztp}
spec:
  predicates:
  - requiredClusterSelector:
      labelSelector:
        matchExpressions: [{key: common-profile, operator: In, values: ['true']}]
";

/// As the seed spells it.
const CANARIES: &str = "  DecisionStrategy:
    clustersPerDecisionGroup: 150
    DecisionGroups:
    - groupName: prod-canary-west
      clusterSelector: {matchExpressions: [{key: prod-canary-west, operator: Exist}]}
    - groupName: prod-canary-east
      clusterSelector: {matchExpressions: [{key: prod-canary-east, operator: Exist}]}
";

const BINDING: &str = "apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: ztp}
spec: {clusterSet: global}
";

/// A hub with the definitions and a namespace in which all clusters may be placed. Clusters that
/// nobody plays the agent of are selected only if nobody taints them.
fn hub(parts: &str) -> (tempfile::TempDir, Running) {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["--controllers", "ocm", "--ocm-parts", parts];
    let hub = Running::start_as(command(directory.path()).args(flags));
    let definitions = hub.convoy("crds --dialect ocm").stdout;
    hub.kubectl_with("apply --server-side -f -", &String::from_utf8(definitions).unwrap());
    hub.kubectl("wait --for=condition=Established crd --all --timeout=30s");
    hub.kubectl("create namespace ztp");
    hub.kubectl_with("apply -f -", BINDING);
    (directory, hub)
}

/// `canary` of the clusters are in each of the two canary groups.
fn clusters(count: usize, canary: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let group = match number {
            _ if number < canary => "prod-canary-west: '', ",
            _ if number < 2 * canary => "prod-canary-east: '', ",
            _ => "",
        };
        writeln!(
            text,
            "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n\
             metadata: {{name: cls{number:03}, labels: {{{group}common-profile: 'true'}}}}\n\
             spec: {{hubAcceptsClient: true}}"
        )
        .unwrap();
        text
    })
}

/// Name, number of clusters and number of decisions of each group.
fn groups(placement: &Value) -> Vec<(String, u64, usize)> {
    let groups = placement["status"]["decisionGroups"].as_array().cloned().unwrap_or_default();
    let read = groups.iter().map(|group| {
        let decisions = group["decisions"].as_array().map_or(0, Vec::len);
        let name = group["decisionGroupName"].as_str().unwrap_or_default().to_owned();
        (name, group["clusterCount"].as_u64().unwrap_or_default(), decisions)
    });
    read.collect()
}

#[test]
fn the_seeds_placements_cut_320_clusters_into_groups() {
    let (_directory, mut hub) = hub("placement,cluster-sets,built-in-sets");
    hub.kubectl_with("create -f -", &clusters(320, 10));
    let placed = |strategy: &str, expected: &[(&str, u64, usize)]| {
        hub.kubectl_with("apply -f -", &format!("{PLACEMENT}{strategy}"));
        let expected: Vec<(String, u64, usize)> = expected
            .iter()
            .map(|(name, count, slices)| ((*name).into(), *count, *slices))
            .collect();
        let is_cut = |placement: &Value| groups(placement) == expected;
        let placement = hub.until("placement ztp-placement -n ztp", is_cut);
        assert_eq!(placement["status"]["numberOfSelectedClusters"], 320);
        let decisions = hub.get("placementdecisions -n ztp");
        let listed = decisions["items"].as_array().unwrap().iter();
        let listed: usize =
            listed.map(|it| it["status"]["decisions"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(listed, 320);
    };
    let (west, east) = ("prod-canary-west", "prod-canary-east");
    placed("", &[("", 320, 4)]);
    placed(CANARIES, &[(west, 10, 1), (east, 10, 1), ("", 150, 2), ("", 150, 2)]);
    let one = "  decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: prod-canary-west, \
        groupClusterSelector: {labelSelector: {matchExpressions: [{key: prod-canary-west, \
        operator: Exists}]}}}]}}\n";
    placed(one, &[(west, 10, 1), ("", 310, 4)]);
    let fifths = "  decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 20%}}\n";
    placed(fifths, &[("", 64, 1), ("", 64, 1), ("", 64, 1), ("", 64, 1), ("", 64, 1)]);
    let sets = hub.get("managedclusterset global");
    assert_eq!(sets["status"]["conditions"][0]["message"], "320 ManagedClusters selected");
    // A placement that goes takes its decisions with it.
    hub.kubectl("delete placement ztp-placement -n ztp");
    hub.until("placementdecisions -n ztp", |it| it["items"].as_array().unwrap().is_empty());
    assert_eq!(hub.end("TERM"), Some(0));
}

#[test]
fn a_managed_cluster_is_accepted_judged_by_its_lease_and_leaves() {
    let (_directory, mut hub) = hub("registration,taints,built-in-sets,cluster-sets,placement");
    hub.kubectl_with("create -f -", &clusters(1, 0));
    hub.kubectl(
        "wait --for=condition=HubAcceptedManagedCluster managedcluster cls000 --timeout=30s",
    );
    hub.until("lease -n cls000", |it| it["items"].as_array().is_some_and(|it| it.len() == 1));
    let taints = |cluster: &Value| cluster["spec"]["taints"].as_array().map_or(0, Vec::len);
    hub.until("managedcluster cls000", |cluster| taints(cluster) == 1);
    // Nobody plays its agent; here the agent says that it is well.
    let well = "{\"status\":{\"conditions\":[{\"type\":\"ManagedClusterConditionAvailable\",\
        \"status\":\"True\",\"reason\":\"ManagedClusterAvailable\",\"message\":\"\",\
        \"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}";
    let patch = "patch managedcluster cls000 --subresource=status --type=merge -p";
    hub.kubectl(&format!("{patch} {well}"));
    hub.until("managedcluster cls000", |cluster| taints(cluster) == 0);
    // Then it falls silent: five times its lease duration of one second.
    let silent = "{\"spec\":{\"leaseDurationSeconds\":1}}";
    hub.kubectl(&format!("patch managedcluster cls000 --type=merge -p {silent}"));
    let cluster = hub.until("managedcluster cls000", |cluster| taints(cluster) == 1);
    let key = &cluster["spec"]["taints"][0]["key"];
    assert_eq!(key, "cluster.open-cluster-management.io/unreachable");
    hub.kubectl("delete managedcluster cls000 --timeout=30s");
    assert_eq!(hub.kubectl("get rolebindings -n cls000 -o name"), "");
    assert_eq!(hub.end("TERM"), Some(0));
}
