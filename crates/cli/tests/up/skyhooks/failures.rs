//! Packages that fail: what is said of them, and every way out.

use serde_json::{Value, json};

use super::site::{Site, embedded};
use super::words::{
    COMPLETE, FAILING, annotation, node_state, package, package_with, says, state, word,
};

fn failing(more: Value) -> Value {
    let mut package = package_with("1.2.3", more);
    package["dependsOn"] = json!({"dexter": "1.2.3"});
    package
}

fn exit_code(code: &str) -> Value {
    json!({"env": [{"name": "EXIT_CODE", "value": code}]})
}

#[test]
fn a_failing_package_says_so() {
    let site = embedded().site("failure", 1);
    let packages = json!({"dexter": package("1.2.3"), "failure": failing(exit_code("2"))});
    let mut spec = site.spec(&packages);
    spec["interruptionBudget"] = json!({"percent": 20});
    site.apply("Skyhook", "failure", &spec);
    let node = site.node_until(0, |node| {
        let state = node_state(node, "failure");
        let restarts = state["failure|1.2.3"]["restarts"].as_i64().unwrap_or(0);
        restarts > 0 && says(node, "failure", FAILING) && word(node, "failure") == "erroring"
    });
    let mut found = node_state(&node, "failure");
    assert!(found["failure|1.2.3"]["restarts"].take().is_i64());
    let entries = ["dexter 1.2.3 config complete", "failure 1.2.3 apply erroring"];
    let mut expected: Value = serde_json::from_str(&state(&entries)).unwrap();
    expected["failure|1.2.3"]["restarts"] = Value::Null;
    assert_eq!(found, expected);
    let status = site.wait("failure", "erroring");
    assert_eq!((&status["completeNodes"], &status["nodesInProgress"]), (&json!("0/1"), &json!(1)));
    assert_eq!(status["packageList"], "dexter:1.2.3,failure:1.2.3");

    // Another environment is a way out: its pod is replaced.
    let packages = json!({"dexter": package("1.2.3"), "failure": failing(exit_code("0"))});
    site.apply("Skyhook", "failure", &site.spec(&packages));
    site.wait("failure", "complete");
    site.node_until(0, |node| says(node, "failure", COMPLETE));
}

/// Fails one step of one stage, until the cause goes away.
fn fails_at(site: &Site, skyhook: &str, condition: &str, failure: &str, stage: &str) {
    let rules =
        format!("[{{when: {{package: {condition}}}, then: {{fails: {failure}, after: 5ms}}}}]");
    let node = &site.nodes[0];
    site.access
        .kubectl(&format!("annotate node {node} 'sim.convoy.dev/rules={rules}' --overwrite"));
    let packages = json!({"frail": package_with("1.0.0", json!({"interrupt": {"type": "noop"}}))});
    site.apply("Skyhook", skyhook, &site.spec(&packages));
    site.node_until(0, |node| {
        let frail = &node_state(node, skyhook)["frail|1.0.0"];
        frail["stage"] == stage && frail["state"] == "erroring" && word(node, skyhook) == "erroring"
    });
    site.wait(skyhook, "erroring");
    site.let_go(0..1);
    site.wait(skyhook, "complete");
    let node = site.node_until(0, |node| says(node, skyhook, COMPLETE));
    let frail = &node_state(&node, skyhook)["frail|1.0.0"];
    assert_eq!((&frail["stage"], &frail["state"]), (&json!("post-interrupt"), &json!("complete")));
    assert_ne!(node["spec"]["unschedulable"], true);
}

#[test]
fn every_stage_fails_and_recovers() {
    let cases = [
        ("frail-image", "{step: init, stage: apply}", "image-pull-error", "apply"),
        ("frail-apply", "{stage: apply}", "crash", "apply"),
        ("frail-check", "{stage: config, step: check}", "crash", "config"),
        ("frail-interrupt", "{stage: interrupt}", "crash", "interrupt"),
        ("frail-after", "{stage: post-interrupt}", "crash", "post-interrupt"),
    ];
    let site = embedded().site("frail", 1);
    for (skyhook, condition, failure, stage) in cases {
        fails_at(&site, skyhook, condition, failure, stage);
    }
}

/// A version that cannot be had is a failure, and the next version a way out.
#[test]
fn an_absent_image_is_a_failure() {
    let site = embedded().site("absent", 1);
    site.apply("Skyhook", "absent", &site.spec(&json!({"pack": package("1.0.0-absent")})));
    site.wait("absent", "erroring");
    site.apply("Skyhook", "absent", &site.spec(&json!({"pack": package("1.0.0")})));
    site.wait("absent", "complete");
    assert_eq!(
        annotation(&site.node(0), "nodeState", "absent"),
        state(&["pack 1.0.0 config complete"])
    );
}
