//! How objects get onto a member: applied by its server, refused by it, and what is told of it.

use std::time::{Duration, Instant};

use crate::running::{Running, command};

const PLACEMENT: &str = "apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
  strategy: {applyStrategy: {type: ServerSideApply}}
";

const MEMBER: &str = "--context convoy-member-1";

/// One member, and a hub that takes snapshots at once.
fn start(directory: &std::path::Path) -> Running {
    let flags = [
        "--members=1",
        "--member-nodes=2",
        "--resource-snapshot-creation-minimum-interval=0s",
        "--resource-changes-collection-duration=0s",
    ];
    let hub = Running::start_as(command(directory).args(flags));
    hub.kubectl("wait --for=condition=Joined memberclusters --all --timeout=60s");
    hub.kubectl("create namespace shop");
    hub
}

#[test]
fn a_server_side_apply_names_conflicts_and_takes_fields_by_force() {
    let directory = tempfile::tempdir().unwrap();
    let mut hub = start(directory.path());
    hub.kubectl("create configmap settings -n shop --from-literal=a=b --from-literal=old=x");
    hub.kubectl_with("apply -f -", PLACEMENT);
    let managed = format!("{MEMBER} get configmap settings -n shop -o yaml --show-managed-fields");
    let live = hub.until_prints(&managed, "manager: work-api-agent");
    assert!(live.contains("operation: Apply"), "{live}");
    // A field that leaves the manifest leaves the member too: the server knows whose it is.
    hub.kubectl_with("replace -f -", &settings("b"));
    let data = format!("{MEMBER} get configmap settings -n shop -o jsonpath={{.data}}");
    let begun = Instant::now();
    while hub.kubectl(&data).contains("old") {
        assert!(begun.elapsed() < Duration::from_mins(1), "the field stays");
        std::thread::sleep(Duration::from_millis(100));
    }
    let theirs = "apply --server-side --force-conflicts --field-manager=somebody -f -";
    hub.kubectl_with(&format!("{MEMBER} {theirs}"), &settings("theirs"));
    let failed = "get clusterresourceplacement shop -o \
        jsonpath={.status.placementStatuses[*].failedPlacements[*].condition.message}";
    hub.until_prints(failed, "conflict with \"somebody\"");
    assert!(hub.kubectl(&data).contains("theirs"));
    let events = "get events -n fleet-member-member-1 -o jsonpath={.items[*].message}";
    hub.until_prints(events, "conflict with \"somebody\"");
    let forced =
        r#"{"spec":{"strategy":{"applyStrategy":{"serverSideApplyConfig":{"force":true}}}}}"#;
    hub.kubectl(&format!("patch clusterresourceplacement shop --type=merge -p {forced}"));
    hub.until_prints(&data, r#""a":"b""#);
    let available = "get clusterresourceplacement shop -o \
        jsonpath={.status.conditions[?(@.status==\"True\")].type}";
    hub.until_prints(available, "ClusterResourcePlacementAvailable");
    assert_eq!(hub.end("TERM"), Some(0));
}

fn settings(value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: shop}}\ndata: \
         {{a: {value}}}\n"
    )
}

fn frozen(value: &str) -> String {
    settings(value).replace("name: settings", "name: frozen")
}

#[test]
fn a_refused_object_is_told_and_the_others_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let mut hub = start(directory.path());
    hub.kubectl("create configmap settings -n shop --from-literal=a=b");
    hub.kubectl_with("apply -f -", &frozen("one"));
    hub.kubectl("create deployment web -n shop --image=web:v1");
    hub.kubectl("create service clusterip web -n shop --tcp=80");
    // What the member's server adds to the objects is no drift.
    let cautious = "type: ClientSideApply, whenToApply: IfNotDrifted, whenToTakeOver: IfNoDiff";
    hub.kubectl_with("apply -f -", &PLACEMENT.replace("type: ServerSideApply", cautious));
    hub.until_prints(&format!("{MEMBER} get configmap frozen -n shop -o name"), "frozen");
    // The member makes immutable what the hub changes.
    let fixed = r#"{"immutable":true}"#;
    hub.kubectl(&format!("{MEMBER} patch configmap frozen -n shop --type=merge -p {fixed}"));
    hub.kubectl_with("apply -f -", &frozen("two"));
    hub.kubectl_with("apply -f -", &settings("new"));
    let of = |name: &str| format!("{MEMBER} get configmap {name} -n shop -o jsonpath={{.data.a}}");
    hub.until_prints(&of("settings"), "new");
    let failed = "get clusterresourceplacement shop -o \
        jsonpath={.status.placementStatuses[*].failedPlacements[*].condition.message}";
    hub.until_prints(failed, "field is immutable");
    assert_eq!(hub.kubectl(&of("frozen")), "one");
    let events = "get events -n fleet-member-member-1 -o jsonpath={.items[*].message}";
    hub.until_prints(events, "field is immutable");
    // Somebody makes room on the member.
    hub.kubectl(&format!("{MEMBER} delete configmap frozen -n shop"));
    hub.until_prints(&of("frozen"), "two");
    let available = "get clusterresourceplacement shop -o \
        jsonpath={.status.conditions[?(@.status==\"True\")].type}";
    hub.until_prints(available, "ClusterResourcePlacementAvailable");
    let drifted = "get clusterresourceplacement shop -o \
        jsonpath={.status.placementStatuses[*].driftedPlacements}";
    assert_eq!(hub.kubectl(drifted), "");
    let properties = "get membercluster member-1 -o jsonpath={.status.properties}";
    hub.until_prints(properties, r#""value":"2""#);
    let usage = hub.kubectl("get membercluster member-1 -o jsonpath={.status.resourceUsage}");
    for part in ["capacity", "allocatable", "available", "cpu", "memory"] {
        assert!(usage.contains(part), "{usage}");
    }
    assert_eq!(hub.end("TERM"), Some(0));
}
