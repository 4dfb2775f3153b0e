//! Cordons, protected pods and evictions, one row per case.

use convoy_testkit::{Builder, node, object};
use serde_json::json;

use super::*;

fn pod(name: &str) -> Builder {
    object("v1", "Pod", name).namespace("web").with("/status/phase", json!("Running"))
}

fn budget(allowed: i64) -> Object {
    object("policy/v1", "PodDisruptionBudget", "pdb")
        .namespace("web")
        .spec(json!({"selector": {"matchLabels": {"app": "web"}}}))
        .status(json!({"disruptionsAllowed": allowed}))
        .build()
}

fn outcome(cordoned: bool, pods: Vec<Builder>, budgets: &[Object]) -> String {
    let hook = object("skyhook.nvidia.com/v1alpha1", "Skyhook", "s")
        .spec(json!({"podNonInterruptLabels": {"matchLabels": {"job": "training"}}}))
        .build();
    let node = node("n").spec(json!({"unschedulable": cordoned})).build();
    let pods: Vec<Object> = pods.into_iter().map(Builder::build).collect();
    let budgets: Vec<&Object> = budgets.iter().collect();
    let mut disruptions = Disruptions::new(&budgets);
    let pods: Vec<&Object> = pods.iter().collect();
    match readiness(&Hook::read(&hook).unwrap(), &node, &pods, &mut disruptions) {
        Readiness::Ready => "ready".to_owned(),
        Readiness::Cordon => "cordon".to_owned(),
        Readiness::Wait(hold) => hold.to_string(),
        Readiness::Evict(pods, _) => {
            let names: Vec<&str> = pods.iter().map(|pod| pod.name().as_str()).collect();
            format!("evict {}", names.join(" "))
        }
    }
}

#[test]
fn a_node_is_cordoned_then_waited_for_then_drained() {
    let tolerant = pod("t").with(
        "/spec/tolerations",
        json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
    );
    let system = object("v1", "Pod", "dns").namespace("kube-system");
    let finished = pod("f").with("/status/phase", json!("Succeeded"));
    let daemon = pod("d").with("/metadata/ownerReferences", json!([{"kind": "DaemonSet"}]));
    let leaving = pod("l").with("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    let training = pod("p").label("job", "training");
    let web = |name| pod(name).label("app", "web");
    let cases = [
        (false, vec![pod("a")], vec![], "cordon"),
        (true, vec![tolerant, system, finished, daemon], vec![], "ready"),
        (true, vec![pod("a"), training], vec![], "pod web/p must not be interrupted"),
        (true, vec![pod("a"), pod("b")], vec![], "evict a b"),
        (true, vec![leaving], vec![], "draining, 1 pod left"),
        (true, vec![web("a"), web("b")], vec![budget(1)], "evict a"),
        (
            true,
            vec![web("a")],
            vec![budget(0)],
            "PodDisruptionBudget web/pdb allows 0 disruptions, so pod web/a cannot be evicted",
        ),
    ];
    for (cordoned, pods, budgets, expected) in cases {
        assert_eq!(outcome(cordoned, pods, &budgets), expected);
    }
}
