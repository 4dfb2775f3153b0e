//! What is refused, and what is filled in, before objects of a fleet are stored: by the embedded
//! server itself, and by the webhooks that `convoy run` serves.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::access::Access;
use crate::home::{CONVOY, control_loop, start};
use crate::running::Running;

fn object(kind: &str, name: &str, spec: &Value) -> String {
    json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": kind,
        "metadata": {"name": name}, "spec": spec})
    .to_string()
}

fn placement(name: &str, kind: &str) -> String {
    let selector = json!({"group": "", "version": "v1", "kind": kind, "name": "shop"});
    object("ClusterResourcePlacement", name, &json!({"resourceSelectors": [selector]}))
}

fn define(access: &Access) {
    let definitions = Command::new(CONVOY).args(["crds", "--dialect", "fleet"]).output().unwrap();
    let definitions = String::from_utf8(definitions.stdout).unwrap();
    access.kubectl_with("apply --server-side -f -", &definitions);
    access.kubectl("wait --for=condition=established crd --all --timeout=60s");
}

/// What upstream's suite asks of its webhooks, in both homes.
fn the_rules_hold(access: &Access) {
    let refused = access.refused("apply -f -", &placement("unknown", "InvalidNamespace"));
    assert!(
        refused.contains(
            "admission webhook \"fleet.clusterresourceplacementv1beta1.validating\" denied the \
             request: spec.resourceSelectors[0].kind: failed to get GVR of the selector"
        ),
        "{refused}"
    );
    access.kubectl_with("apply -f -", &placement("shop", "Namespace"));
    let stored = access.get("clusterresourceplacement shop");
    assert_eq!(
        stored["spec"]["strategy"],
        json!({"type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%",
                "unavailablePeriodSeconds": 60},
            "applyStrategy": {"type": "ClientSideApply", "comparisonOption": "PartialComparison",
                "whenToApply": "Always", "whenToTakeOver": "Always"}})
    );
    assert_eq!(stored["spec"]["policy"], json!({"placementType": "PickAll"}));
    let other = r#"patch clusterresourceplacement shop --type=merge -p {"spec":{"policy":{"placementType":"PickN","numberOfClusters":1}}}"#;
    let refused = access.refused(other, "");
    assert!(refused.contains("placement type is immutable"), "{refused}");
    let budget =
        object("ClusterResourcePlacementDisruptionBudget", "shop", &json!({"maxUnavailable": 1}));
    let refused = access.refused("apply -f -", &budget);
    assert!(refused.contains("PickAll is not supported with any specified"), "{refused}");

    let selector = json!({"group": "", "version": "v1", "kind": "Namespace", "name": "shop"});
    let patches = |path: &str| {
        json!({"clusterResourceSelectors": [selector], "policy": {"overrideRules":
            [{"jsonPatchOverrides": [{"op": "remove", "path": path}]}]}})
    };
    let first = object("ClusterResourceOverride", "first", &patches("/spec/a"));
    access.kubectl_with("apply -f -", &first);
    let second = object("ClusterResourceOverride", "second", &patches("/kind"));
    let refused = access.refused("apply -f -", &second);
    assert!(
        refused.contains(
            "invalid resource selector {Group: Version:v1 Kind:Namespace Name:shop \
             LabelSelector:nil SelectionScope:NamespaceWithResources}: the resource has been \
             selected by both second and first, which is not supported"
        ) && refused.contains("cannot override typeMeta fields"),
        "{refused}"
    );
}

#[test]
fn the_embedded_server_has_the_rules_of_a_fleet_built_in() {
    let home = Running::start();
    define(&home);
    the_rules_hold(&home);
}

#[test]
fn webhooks_of_a_fleet_are_served_and_registered() {
    let directory = tempfile::tempdir().unwrap();
    let home = Running::start_in(directory.path(), &["--skip-admission"]);
    define(&home);
    home.kubectl("create namespace fleet-system");
    let place = convoy_kubernetes::Running::new("fleet-webhooks").unwrap();
    let mut command = control_loop(&home.kubeconfig, "fleet");
    command.args(["--webhook-listen=127.0.0.1:0", "--webhook-host=127.0.0.1"]);
    command.args(["--webhook-namespace=fleet-system"]);
    let _convoy = start(&place, &mut command).0;
    let begun = Instant::now();
    loop {
        let output = home
            .try_kubectl("apply --dry-run=server -f -", &placement("unknown", "InvalidNamespace"));
        if !output.status.success() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "the server does not ask");
        std::thread::sleep(Duration::from_millis(100));
    }
    the_rules_hold(&home);
    let registered = home.kubectl("get validatingwebhookconfigurations -o name");
    assert!(registered.contains("fleet-validating-webhook-configuration"), "{registered}");
}

/// Somebody whom RBAC lets do everything, and whom the guard rail does not know.
fn let_ann_do_everything(access: &Access) {
    access.kubectl("create clusterrolebinding ann --clusterrole=cluster-admin --user=ann");
    let accounts = "create clusterrolebinding accounts --clusterrole=cluster-admin \
        --group=system:serviceaccounts";
    access.kubectl(accounts);
}

/// What the guard rail refuses to a user, and to whom it does not.
fn the_guard_rail_holds(access: &Access) {
    let account = "--as system:serviceaccount:x:y --as-group system:serviceaccounts";
    for (what, told) in [
        ("create namespace fleet-x", "CREATE resource /v1, Kind=Namespace/: /fleet-x"),
        (
            "create configmap a -n fleet-system",
            "CREATE resource /v1, Kind=ConfigMap/: fleet-system/a",
        ),
        (
            "create configmap a -n kube-system",
            "CREATE resource /v1, Kind=ConfigMap/: kube-system/a",
        ),
        (
            "delete crd works.placement.kubernetes-fleet.io",
            "DELETE resource apiextensions.k8s.io/v1, Kind=CustomResourceDefinition/: \
             /works.placement.kubernetes-fleet.io",
        ),
    ] {
        let refused = access.refused(&format!("{what} --as ann"), "");
        let user = "user: 'ann' in 'groups: [system:authenticated]' is not allowed to";
        assert!(refused.contains(&format!("{user} {told}")), "{what}: {refused}");
        let is_definition = what.starts_with("delete crd");
        let output = access.try_kubectl(&format!("{what} --dry-run=server {account}"), "");
        assert_eq!(output.status.success(), !is_definition, "{what}: {output:?}");
        access.kubectl(&format!("{what} --dry-run=server"));
    }
    access.kubectl("create namespace shop --as ann");
    access.kubectl("create configmap a -n shop --as ann");
    let member = json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": "eu", "annotations": {"fleet.azure.com/cluster": "1"}},
        "spec": {"identity": {"kind": "User", "name": "agent"}}})
    .to_string();
    let refused = access.refused("apply -f - --as ann", &member);
    assert!(refused.contains("Kind=MemberCluster/: /eu"), "{refused}");
    access.kubectl_with("apply -f -", &member);
    access.kubectl("label membercluster eu env=test --as ann");
    let refused = access.refused("annotate membercluster eu fleet.azure.com/cluster-", "");
    assert!(refused.contains("by no user"), "{refused}");
}

#[test]
fn the_embedded_server_has_a_guard_rail_if_asked() {
    let directory = tempfile::tempdir().unwrap();
    let home = Running::start_in(directory.path(), &["--enable-guard-rail"]);
    define(&home);
    home.kubectl("create namespace fleet-system");
    let_ann_do_everything(&home);
    the_guard_rail_holds(&home);
    let listed = Running::start();
    listed.kubectl("create namespace fleet-x");
}

#[test]
fn a_guard_rail_is_served_and_registered() {
    let directory = tempfile::tempdir().unwrap();
    let home = Running::start_in(directory.path(), &["--skip-admission"]);
    define(&home);
    home.kubectl("create namespace fleet-system");
    let_ann_do_everything(&home);
    let place = convoy_kubernetes::Running::new("fleet-guard-rail").unwrap();
    let mut command = control_loop(&home.kubeconfig, "fleet");
    command.args(["--webhook-listen=127.0.0.1:0", "--webhook-host=127.0.0.1"]);
    command.args(["--webhook-namespace=fleet-system", "--enable-guard-rail"]);
    let _convoy = start(&place, &mut command).0;
    let begun = Instant::now();
    let asked = "create namespace fleet-x --dry-run=server --as ann";
    while home.try_kubectl(asked, "").status.success() {
        assert!(begun.elapsed() < Duration::from_mins(1), "the server does not ask");
        std::thread::sleep(Duration::from_millis(100));
    }
    the_guard_rail_holds(&home);
    let registered = home.kubectl("get validatingwebhookconfigurations -o name");
    assert!(registered.contains("fleet-guard-rail-webhook-configuration"), "{registered}");
}
