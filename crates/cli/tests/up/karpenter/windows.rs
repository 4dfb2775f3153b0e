//! Budgets by reason and window: what the document of the proposal promises, in a home whose clock
//! is set.

use std::path::Path;

use serde_json::{Value, json};

use super::{apply, budget, change_template, class, deployment, is, is_current, items, pool};
use crate::home::define;
use crate::running::Running;

fn at(directory: &Path, time: &str) -> Running {
    Running::start_in(directory, &["--nodes", "1", "--clock", time])
}

/// A pool with `replicas` pods, each of which fills half a node or, with `1500m`, a whole one.
fn with_pods(running: &Running, pool: &Value, replicas: u32, cpu: &str, claims: usize) {
    define(running, "karpenter");
    apply(running, &class());
    apply(running, pool);
    apply(running, &deployment(replicas, cpu, &json!({"karpenter.sh/nodepool": "default"})));
    running.kubectl("rollout status deployment/web --timeout=120s");
    running.until("nodeclaims", |seen| {
        items(seen).count() == claims && items(seen).all(|claim| is(claim, "Ready"))
    });
}

/// What each reason still allows.
fn allowed(pool: &Value) -> &str {
    let mut conditions = pool["status"]["conditions"].as_array().into_iter().flatten();
    let valid = conditions.find(|entry| entry["type"] == "DisruptionBudgetsValid");
    valid.and_then(|entry| entry["message"].as_str()).unwrap_or_default()
}

/// Drift waits while `budgets` close it at `closed`, although a node goes when the pods become
/// fewer; at `open` it runs to its end.
fn drift_waits(budgets: &Value, closed: &str, open: &str, pods: (u32, &str), fewer: u32) {
    let directory = tempfile::tempdir().unwrap();
    let mut running = at(directory.path(), closed);
    let disruption = json!({"consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s", "budgets": budgets});
    with_pods(&running, &pool(&disruption), pods.0, pods.1, 3);
    apply(&running, &budget(&json!(1)));
    change_template(&running);
    running.until("nodeclaims", |seen| items(seen).all(|claim| is(claim, "Drifted")));
    running.kubectl(&format!("scale deployment web --replicas {fewer}"));
    let left = running.until("nodeclaims", |seen| items(seen).count() == 2);
    assert!(!items(&left).any(is_current), "none drifted: {left:#}");
    let seen = running.get("nodepool default");
    assert!(allowed(&seen).contains("Drifted: 0 more (0 of 0 by budget 0"), "{}", allowed(&seen));
    running.end("TERM");
    drop(running);
    let running = at(directory.path(), open);
    let (most, _) = super::watch_drift(&running);
    assert_eq!(most, 1, "one node at a time");
    let created = running.get("nodeclaims")["items"][0]["metadata"]["creationTimestamp"].clone();
    let day = open.split_once('T').unwrap().0;
    assert!(created.as_str().unwrap().starts_with(day), "{created} is not of {day}");
}

#[test]
fn upgrades_wait_for_their_window_while_consolidation_goes_on() {
    // From 02:00 to 04:00.
    let budgets = json!([{"nodes": "0", "reasons": ["Drifted"],
        "schedule": "0 4 * * *", "duration": "22h"}, {"nodes": "1"}]);
    // Four pods that fill half a node each are left on three nodes.
    drift_waits(&budgets, "2026-03-10T12:00:00Z", "2026-03-11T02:00:10Z", (6, "900m"), 4);
}

#[test]
fn empty_nodes_go_all_day_and_the_rest_outside_business_hours() {
    let budgets = json!([{"nodes": "0", "reasons": ["Drifted", "Underutilized"],
        "schedule": "0 9 * * mon-fri", "duration": "8h"}, {"nodes": "1"}]);
    drift_waits(&budgets, "2026-03-10T10:00:00Z", "2026-03-10T17:00:10Z", (3, "1500m"), 2);
}

#[test]
fn the_examples_of_the_proposal_allow_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let running = at(directory.path(), "2026-03-10T12:00:00Z");
    let older = |budgets: Value| {
        let mut older = pool(&json!({"consolidationPolicy": "WhenUnderutilized",
            "expireAfter": "Never", "budgets": budgets}));
        older["apiVersion"] = json!("karpenter.sh/v1beta1");
        let template = older["spec"]["template"]["spec"].as_object_mut().unwrap();
        template.remove("expireAfter");
        template["nodeClassRef"] = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass", "name": "default"});
        older
    };
    let every_minute = |nodes: u32, reasons: Value| match reasons {
        Value::Null => json!({"nodes": nodes, "schedule": "* * * * *"}),
        reasons => json!({"nodes": nodes, "reasons": reasons, "schedule": "* * * * *"}),
    };
    let three = json!([
        every_minute(15, json!(["drifted", "underutilized"])),
        every_minute(10, json!(["drifted"])),
        every_minute(5, Value::Null)
    ]);
    with_pods(&running, &older(three), 20, "1500m", 20);
    let says = |expected: &[&str]| {
        running.until("nodepool default", |pool| {
            expected.iter().all(|part| allowed(pool).contains(part))
        });
    };
    says(&["Drifted: 10 more", "Underutilized: 15 more", "Empty: 5 more", "Expired: 5 more"]);
    // Fourteen nodes leave, and a PodDisruptionBudget keeps them from going.
    apply(&running, &budget(&json!(0)));
    running.until("pdb web", |pdb| pdb["status"]["expectedPods"] == 20);
    let claims = running.get("nodeclaims");
    let names: Vec<&str> =
        items(&claims).take(14).map(|claim| claim["metadata"]["name"].as_str().unwrap()).collect();
    running.kubectl(&format!("delete nodeclaims --wait=false {}", names.join(" ")));
    says(&[
        "Drifted: 0 more (14 of 10",
        "Underutilized: 1 more (14 of 15",
        "Empty: 0 more (14 of 5",
    ]);
    // Without a default, what no budget names has no limit.
    apply(
        &running,
        &older(json!([
            every_minute(10, json!(["drift", "underutilized"])),
            every_minute(5, json!(["empty"]))
        ])),
    );
    says(&["Drifted: 0 more (14 of 10", "Empty: 0 more (14 of 5", "(no budget applies)"]);
    apply(
        &running,
        &older(json!([
            every_minute(10, json!(["drifted", "underutilized"])),
            every_minute(30, Value::Null)
        ])),
    );
    says(&["Drifted: 0 more (14 of 10", "Empty: 16 more (14 of 30"]);
}
