//! NodePools, NodeClaims and PodDisruptionBudgets of a home of its own, met with stock kubectl.

mod faults;
mod windows;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::access::Access;
use crate::home::define;
use crate::placements::guide::run_through;
use crate::running::Running;

#[test]
fn the_guide_to_karpenter_prints_what_it_shows() {
    run_through("up/karpenter.rs::the_guide_to_karpenter_prints_what_it_shows", 12);
}

pub(crate) fn apply(running: &Access, object: &Value) {
    running.kubectl_with("apply -f -", &object.to_string());
}

/// A Deployment of pods that need `cpu` each, on nodes of the pool if there is one.
fn deployment(replicas: u32, cpu: &str, selector: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"nodeSelector": selector, "containers": [{"name": "web",
                "image": "example/web:1", "resources": {"requests": {"cpu": cpu}}}]}}}})
}

fn budget(most: &Value) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"maxUnavailable": most, "selector": {"matchLabels": {"app": "web"}}}})
}

pub(crate) fn class() -> Value {
    json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
        "metadata": {"name": "default"}})
}

/// A pool of nodes for two pods of 900m each.
pub(crate) fn pool(disruption: &Value) -> Value {
    let is_in = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {"disruption": disruption, "template": {"spec": {
            "expireAfter": "Never",
            "requirements": [is_in("node.kubernetes.io/instance-type", "c-2x-amd64-linux")],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass",
                "name": "default"}}}}})
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().unwrap().iter()
}

fn is(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|entry| entry["type"] == kind && entry["status"] == "True")
}

/// A home with a pool and six pods on three of its nodes.
fn with_pool(directory: &std::path::Path) -> Running {
    let running = Running::start_in(directory, &["--nodes", "1"]);
    define(&running, "karpenter");
    apply(&running, &class());
    fill(&running);
    running
}

/// Makes a pool, and six pods that run on three of its nodes.
pub(crate) fn fill(running: &Access) {
    apply(running, &pool(&json!({"consolidateAfter": "Never", "budgets": [{"nodes": "1"}]})));
    apply(running, &deployment(6, "900m", &json!({"karpenter.sh/nodepool": "default"})));
    apply(running, &budget(&json!(1)));
    running.kubectl("rollout status deployment/web --timeout=120s");
    running.until("nodeclaims", |claims| {
        let is_fine = |claim| is(claim, "Ready") && is(claim, "ConsistentStateFound");
        items(claims).count() == 3 && items(claims).all(is_fine)
    });
    running.until("nodepool default", |pool| is(pool, "NodeRegistrationHealthy"));
}

/// The next template of the pool.
fn change_template(running: &Access) {
    let patch = r#"{"spec":{"template":{"metadata":{"labels":{"revision":"two"}}}}}"#;
    running.kubectl(&format!("patch nodepool default --type merge -p {patch}"));
}

fn is_current(object: &Value) -> bool {
    object["metadata"]["labels"]["revision"] == "two"
}

/// Watches a drift until every claim is of the new template; the most nodes that were disrupted
/// at once, and the fewest pods that were ready.
fn watch_drift(running: &Access) -> (usize, usize) {
    let (mut most, mut fewest) = (0, usize::MAX);
    let started = Instant::now();
    loop {
        let seen = running.get("nodeclaims,pods");
        let of = |kind: &'static str| items(&seen).filter(move |object| object["kind"] == kind);
        let leaves = |claim: &&Value| {
            !is(claim, "InstanceTerminating")
                && (is(claim, "DisruptionReason")
                    || !claim["metadata"]["deletionTimestamp"].is_null())
        };
        most = most.max(of("NodeClaim").filter(leaves).count());
        let ready =
            |pod: &&Value| is(pod, "Ready") && pod["metadata"]["deletionTimestamp"].is_null();
        fewest = fewest.min(of("Pod").filter(ready).count());
        if of("NodeClaim").all(is_current) {
            return (most, fewest);
        }
        assert!(started.elapsed() < Duration::from_mins(2), "the drift never ends: {seen:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn kubectl_drain_respects_a_disruption_budget_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "2"]);
    apply(&running, &deployment(4, "1", &json!({})));
    apply(&running, &budget(&json!(0)));
    running.kubectl("rollout status deployment/web --timeout=120s");
    let status =
        running.until("pdb web", |pdb| pdb["status"]["currentHealthy"] == 4)["status"].clone();
    let numbers =
        ["expectedPods", "desiredHealthy", "disruptionsAllowed"].map(|it| status[it].clone());
    assert_eq!(numbers, [4, 4, 0]);
    assert_eq!(status["conditions"][0]["reason"], "InsufficientPods");
    let refused = running.refused("drain node-0 --timeout=3s", "");
    assert!(refused.contains("would violate the pod's disruption budget"), "{refused}");
    let on_node = || running.get("pods --field-selector spec.nodeName=node-0");
    assert_eq!(items(&on_node()).count(), 2, "nothing was evicted");
    apply(&running, &budget(&json!("25%")));
    running.until("pdb web", |pdb| pdb["status"]["disruptionsAllowed"] == 1);
    running.kubectl("drain node-0 --timeout=100s");
    assert_eq!(items(&on_node()).count(), 0);
    running.until("pdb web", |pdb| pdb["status"]["currentHealthy"] == 4);
}

#[test]
fn a_pool_makes_nodes_for_pods_and_drifts_within_its_budget() {
    let directory = tempfile::tempdir().unwrap();
    drifts_within_its_budget(&with_pool(directory.path()));
}

/// Changes the template of a pool of three nodes, and watches it through to the end.
pub(crate) fn drifts_within_its_budget(running: &Access) {
    let node = &running.get("nodes -l karpenter.sh/nodepool=default")["items"][0];
    assert_eq!(node["metadata"]["labels"]["karpenter.sh/initialized"], "true");
    assert_eq!(node["metadata"]["finalizers"], json!(["karpenter.sh/termination"]));
    let columns = running.kubectl("get nodepool default --no-headers");
    assert!(columns.contains("default   default   3     True"), "{columns}");
    change_template(running);
    let (most, fewest) = watch_drift(running);
    assert_eq!(most, 1, "one node at a time");
    assert!(fewest >= 5, "{fewest} of 6 pods were ready");
    let after = running
        .until("nodes -l karpenter.sh/nodepool=default", |nodes| items(nodes).all(is_current));
    assert!(items(&after).all(|node| node["spec"]["taints"].is_null()), "{after:#}");
    running.kubectl("rollout status deployment/web --timeout=60s");
    let events = running.kubectl("get events -o custom-columns=R:.reason");
    for reason in ["DisruptionLaunching", "DisruptionTerminating", "Evicted"] {
        assert!(events.contains(reason), "{reason}: {events}");
    }
    // Unknown since the change, until one of the new nodes had registered.
    running.until("nodepool default", |pool| is(pool, "NodeRegistrationHealthy"));
}

#[test]
fn a_drift_goes_on_after_the_process_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = with_pool(directory.path());
    change_template(&running);
    running.until("nodeclaims", |claims| {
        items(claims).any(|claim| is(claim, "DisruptionReason") || is_current(claim))
    });
    running.end("KILL");
    drop(running);
    let running = Running::start_in(directory.path(), &["--nodes", "1"]);
    let (most, _) = watch_drift(&running);
    assert!(most <= 1, "{most} at once");
    let after = running.until("nodeclaims,nodes -l karpenter.sh/nodepool=default", |seen| {
        let of = |kind: &str| items(seen).filter(|object| object["kind"] == kind).count();
        (of("NodeClaim"), of("Node")) == (3, 3)
    });
    assert!(items(&after).all(|object| object["spec"]["taints"].is_null()), "{after:#}");
}

#[test]
fn nodes_go_with_their_pool_and_with_their_claim() {
    let directory = tempfile::tempdir().unwrap();
    let running = with_pool(directory.path());
    running.kubectl("delete deployment web --cascade=foreground --timeout=60s");
    let claims = running.get("nodeclaims");
    let first = claims["items"][0]["metadata"]["name"].as_str().unwrap();
    running.kubectl(&format!("delete nodeclaim {first} --timeout=60s"));
    running.kubectl(&format!("wait --for=delete node/{first} --timeout=60s"));
    running.kubectl("delete nodepool default --timeout=60s");
    running.until("nodeclaims,nodes", |seen| {
        items(seen).all(|object| object["metadata"]["name"] == "node-0")
    });
}

#[test]
fn static_pools_have_their_nodes_unless_they_are_switched_off() {
    for (is_on, count) in [("true", 2), ("false", 0)] {
        let directory = tempfile::tempdir().unwrap();
        let gate = format!("StaticCapacity={is_on}");
        let flags = ["--nodes", "1", "--feature-gates", &gate];
        let running = Running::start_in(directory.path(), &flags);
        define(&running, "karpenter");
        apply(&running, &class());
        let mut fixed = pool(&json!({"consolidateAfter": "Never"}));
        fixed["spec"]["replicas"] = json!(2);
        apply(&running, &fixed);
        running.until("nodepool default", |pool| {
            is(pool, "Ready") && pool["status"]["nodes"] == count
        });
        assert_eq!(items(&running.get("nodeclaims")).count(), count);
    }
}

#[test]
fn a_claim_that_no_machine_is_left_for_is_given_up_and_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "1"]);
    define(&running, "karpenter");
    let mut sold_out = class();
    sold_out["metadata"]["annotations"] = json!({"convoy.dev/sold-out": "spot, on-demand"});
    apply(&running, &sold_out);
    apply(&running, &pool(&json!({"consolidateAfter": "Never"})));
    apply(&running, &deployment(1, "900m", &json!({"karpenter.sh/nodepool": "default"})));
    running.until("events", |events| {
        items(events).any(|event| event["reason"] == "InsufficientCapacityError")
    });
    assert_eq!(running.kubectl("get nodes -l karpenter.sh/nodepool -o name"), "");
    running.kubectl("annotate kwoknodeclass default convoy.dev/sold-out-");
    running.kubectl("rollout status deployment/web --timeout=120s");
}

#[test]
fn a_pool_of_v1beta1_keeps_its_meaning_and_comes_back_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start_in(directory.path(), &["--nodes", "1"]);
    define(&running, "karpenter");
    apply(&running, &class());
    keeps_its_meaning(&running);
}

/// Writes a pool as `v1beta1`, and reads it in both versions.
pub(crate) fn keeps_its_meaning(running: &Access) {
    // The document's example of a budget for two reasons and a default, and one for expiration.
    let disruption = json!({"consolidationPolicy": "WhenUnderutilized", "expireAfter": "90m",
        "budgets": [
            {"nodes": 10, "reason": ["drifted", "underutilized"], "schedule": "* * * * *"},
            {"nodes": 5, "schedule": "* * * * *"},
            {"nodes": 0, "reasons": ["expired"]}]});
    let written = json!({"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool",
        "metadata": {"name": "older"}, "spec": {"disruption": disruption, "template": {"spec": {
            "kubelet": {"maxPods": 20}, "requirements": [], "nodeClassRef": {
                "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
                "name": "default"}}}}});
    apply(running, &written);
    let newer = running.until("nodepools.v1.karpenter.sh older", |pool| is(pool, "Ready"));
    let budgets = json!([{"nodes": "10", "reasons": ["Drifted", "Underutilized"]}, {"nodes": "5"},
        {"nodes": "0", "reasons": ["Expired"]}]);
    assert_eq!(newer["spec"]["disruption"]["budgets"], budgets);
    let annotations = &newer["metadata"]["annotations"];
    assert_eq!(annotations["convoy.dev/default-budget"], "unlisted");
    assert_eq!(annotations["convoy.dev/expiration"], "budgeted");
    assert_eq!(newer["spec"]["template"]["spec"]["expireAfter"], "90m");
    let conditions = newer["status"]["conditions"].as_array().unwrap();
    let valid = conditions.iter().find(|entry| entry["type"] == "DisruptionBudgetsValid").unwrap();
    assert_eq!(valid["status"], "True", "{valid}");
    // Those who know only v1 may change a budget that names `Expired`.
    let change = r#"[{"op": "replace", "path": "/spec/disruption/budgets/2/nodes", "value": "1"}]"#;
    let patch = |change: &str| {
        running.kubectl(&format!("patch nodepools.v1.karpenter.sh older --type=json -p '{change}'"))
    };
    patch(change);
    patch(&change.replace("\"1\"", "\"0\""));
    running.kubectl("label nodepools.v1beta1.karpenter.sh older tier=web");
    let older = running.get("nodepools.v1beta1.karpenter.sh older");
    assert_eq!(older["spec"], written["spec"]);
    assert_eq!(older["metadata"]["annotations"]["convoy.dev/expiration"], Value::Null);
    let again = running.kubectl_with("apply -f -", &written.to_string());
    assert!(again.contains("unchanged"), "{again}");
}
