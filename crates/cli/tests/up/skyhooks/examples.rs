//! The worked examples of the policy document, live.

use serde_json::{Value, json};

use super::policies::{batches, policy};
use super::site::{Site, embedded};
use super::words::{package, word};

/// A Skyhook that only says how it sees its nodes.
fn paused(site: &Site, name: &str) {
    let spec = site.paced(name, &json!({"tuning": package("1.0.0")}));
    site.apply_annotated("Skyhook", name, &json!({"skyhook.nvidia.com/pause": "true"}), &spec);
}

/// Waits until a compartment has so many nodes and lets so many go.
fn compartment(site: &Site, skyhook: &str, name: &str, matched: usize, ceiling: usize) {
    site.skyhook_until(skyhook, |found| {
        let told = &found["status"]["compartmentStatuses"][name];
        told["matched"] == matched && told["ceiling"] == ceiling
    });
}

#[test]
fn percents_round_down_to_one_at_least() {
    let site = embedded().site("percent", 10);
    let set = |percent: u32| {
        let rest = json!({"budget": {"count": 1}});
        let row = json!({"name": "row", "selector": {"matchLabels": {"row": "yes"}}, "budget": {"percent": percent}});
        site.apply("DeploymentPolicy", "percent", &json!({"default": rest, "compartments": [row]}));
    };
    set(25);
    paused(&site, "percent");
    for (matched, percent, ceiling) in
        [(10, 25, 2), (10, 30, 3), (5, 10, 1), (6, 33, 1), (4, 50, 2), (2, 30, 1), (0, 50, 0)]
    {
        set(percent);
        if matched > 0 {
            site.label(0..matched, "row=yes");
        }
        if matched < 10 {
            site.label(matched..10, "row-");
        }
        compartment(&site, "percent", "row", matched, ceiling);
    }
}

#[test]
fn the_safest_compartment_has_a_node() {
    let site = embedded().site("ties", 4);
    site.label(0..3, "region=us-west");
    site.label(0..2, "env=production");
    site.label(0..1, "priority=critical");
    site.label(3..4, "twin=yes");
    let select = |name: &str, label: &str, value: &str, count: u32, strategy: Value| json!({"name": name, "selector": {"matchLabels": {label: value}}, "budget": {"count": count}, "strategy": strategy});
    let compartments = [
        select("us-west", "region", "us-west", 20, json!({"exponential": {}})),
        select("production", "env", "production", 10, json!({"linear": {}})),
        select("critical", "priority", "critical", 3, json!({"fixed": {}})),
        // Equals in everything but their names.
        select("comp-2", "twin", "yes", 1, json!({"fixed": {}})),
        json!({"name": "comp-10", "selector": {"matchExpressions": [{"key": "twin", "operator": "In", "values": ["yes"]}]},
            "budget": {"count": 1}, "strategy": {"fixed": {}}}),
    ];
    site.apply(
        "DeploymentPolicy",
        "ties",
        &json!({"default": {"budget": {"count": 1}}, "compartments": compartments}),
    );
    paused(&site, "ties");
    for (name, matched, ceiling) in [
        ("critical", 1, 3),
        ("production", 1, 10),
        ("us-west", 1, 20),
        ("comp-10", 1, 1),
        ("comp-2", 0, 1),
        ("__default__", 0, 1),
    ] {
        compartment(&site, "ties", name, matched, ceiling);
    }
}

#[test]
fn batches_grow_as_their_strategy_says() {
    let site = embedded().site("growth", 15);
    for (name, strategy, expected) in [
        ("growth-linear", json!({"linear": {"initialBatch": 1, "delta": 1}}), vec![1, 2, 3, 4, 5]),
        (
            "growth-exponential",
            json!({"exponential": {"initialBatch": 1, "growthFactor": 2}}),
            vec![1, 2, 4, 8],
        ),
        ("growth-fixed", json!({"fixed": {"initialBatch": 5}}), vec![5, 5, 5]),
    ] {
        policy(&site, name, &json!({"percent": 100}), &strategy);
        let skyhooks = site.record_skyhook(name);
        site.apply("Skyhook", name, &site.paced(name, &json!({"tuning": package("1.0.0")})));
        site.wait(name, "complete");
        assert_eq!(batches(&skyhooks, &site.skyhook(name), &site.nodes), expected, "{name}");
    }
}

fn broken() -> Value {
    json!({"tuning": {"version": "1.0.0", "image": "example/broken"}})
}

fn batch(status: &Value) -> &Value {
    &status["compartmentStatuses"]["__default__"]["batchState"]
}

fn count(site: &Site, skyhook: &str, wanted: &str) -> usize {
    let nodes = site.access.get(&format!("nodes -l site={}", site.name));
    nodes["items"].as_array().unwrap().iter().filter(|node| word(node, skyhook) == wanted).count()
}

/// Before the safety limit failed batches shrink; from there on they grow all the same.
#[test]
fn failed_batches_shrink_before_the_safety_limit() {
    let site = embedded().site("shrink", 15);
    policy(
        &site,
        "shrink",
        &json!({"percent": 100}),
        &json!({"exponential": {"initialBatch": 4, "safetyLimit": 50}}),
    );
    let skyhooks = site.record_skyhook("shrink");
    site.apply("Skyhook", "shrink", &site.paced("shrink", &broken()));
    let status = site.wait("shrink", "erroring");
    assert_eq!(count(&site, "shrink", "erroring"), 15, "{status:#}");
    // 4 of 15 is 26 percent, 6 is 40, 7 is 46; 8 is 53.
    assert_eq!(batches(&skyhooks, &site.skyhook("shrink"), &site.nodes), [4, 2, 1, 1, 2, 4, 1]);
    assert_eq!(batch(&status)["shouldStop"], Value::Null);
    site.patch("shrink", &json!({"spec": {"packages": {"tuning": package("1.0.1")}}}));
    site.wait("shrink", "complete");
}

/// Before the safety limit failures stop a compartment; another version starts it anew.
#[test]
fn failures_stop_before_the_safety_limit_only() {
    let site = embedded().site("stop", 8);
    let strategy = json!({"fixed": {"initialBatch": 1, "failureThreshold": 2, "safetyLimit": 50}});
    policy(&site, "stop", &json!({"count": 1}), &strategy);
    site.apply("Skyhook", "stop", &site.paced("stop", &broken()));
    let stopped = site
        .access
        .until("skyhook stop", |skyhook| batch(&skyhook["status"])["shouldStop"] == true);
    let state = batch(&stopped["status"]);
    assert_eq!(
        (&state["consecutiveFailures"], &state["failedNodes"]),
        (&json!(2), &json!(2)),
        "{state}"
    );
    assert_eq!((count(&site, "stop", "erroring"), count(&site, "stop", "waiting")), (2, 6));
    site.patch("stop", &json!({"spec": {"packages": {"tuning": package("1.0.1")}}}));
    let status = site.wait("stop", "complete");
    assert_eq!(batch(&status), &json!({"currentBatch": 1}));

    // The same failures, late: the last four nodes of the next version.
    let nodes = site.access.get("nodes -l site=stop --sort-by=.metadata.name");
    let mut order: Vec<(String, String)> = nodes["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| {
            let text = |field: &str| node["metadata"][field].as_str().unwrap().to_owned();
            (text("creationTimestamp"), text("name"))
        })
        .collect();
    order.sort();
    let late: Vec<&str> = order[4..].iter().map(|(_, name)| name.as_str()).collect();
    let rules = "[{when: {package: {name: tuning}}, then: {fails: crash, after: 5ms}}]";
    site.access
        .kubectl(&format!("annotate nodes {} 'sim.convoy.dev/rules={rules}'", late.join(" ")));
    site.patch("stop", &json!({"spec": {"packages": {"tuning": package("1.0.2")}}}));
    let status = site.wait("stop", "erroring");
    assert_eq!(
        (count(&site, "stop", "complete"), count(&site, "stop", "erroring")),
        (4, 4),
        "{status:#}"
    );
    assert_eq!(batch(&status)["shouldStop"], Value::Null);
    assert!(batch(&status)["consecutiveFailures"].as_i64() >= Some(3), "{status:#}");
    site.access.kubectl(&format!("annotate nodes {} sim.convoy.dev/rules-", late.join(" ")));
    site.wait("stop", "complete");
}

/// The Skyhook's word goes before the policy's, and that before the default.
#[test]
fn who_says_whether_batch_state_is_reset() {
    let site = embedded().site("precedence", 3);
    for (name, of_policy, of_skyhook, is_reset) in [
        ("precedence-default", None, None, true),
        ("precedence-policy", Some(false), None, false),
        ("precedence-over", Some(false), Some(true), true),
        ("precedence-under", Some(true), Some(false), false),
    ] {
        let mut policy = json!({"default": {"budget": {"count": 1}, "strategy": {"linear": {}}}});
        policy["resetBatchStateOnCompletion"] = json!(of_policy.unwrap_or(true));
        if of_policy.is_none() {
            policy.as_object_mut().unwrap().remove("resetBatchStateOnCompletion");
        }
        site.apply("DeploymentPolicy", name, &policy);
        let mut spec = site.paced(name, &json!({"tuning": package("1.0.0")}));
        if let Some(of_skyhook) = of_skyhook {
            spec["deploymentPolicyOptions"] = json!({"resetBatchStateOnCompletion": of_skyhook});
        }
        site.apply("Skyhook", name, &spec);
        let status = site.wait(name, "complete");
        assert_eq!(
            *batch(&status) == json!({"currentBatch": 1}),
            is_reset,
            "{name}: {}",
            batch(&status)
        );
    }
}

/// A legacy budget becomes a policy, and the rollout goes on as if it had always had one.
#[test]
fn a_legacy_budget_is_migrated() {
    let site = embedded().site("migrated", 8);
    let mut spec = site.spec(&json!({"tuning": package("1.0.0")}));
    spec["interruptionBudget"] = json!({"percent": 25});
    site.apply("Skyhook", "migrated", &spec);
    site.wait("migrated", "complete");
    let file = site.path("skyhook.json");
    let clean = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": "Skyhook",
        "metadata": {"name": "migrated"}, "spec": spec});
    std::fs::write(&file, clean.to_string()).unwrap();
    let migrated = std::process::Command::new(crate::home::CONVOY)
        .arg("migrate")
        .arg("-f")
        .arg(&file)
        .output()
        .unwrap();
    site.access.kubectl_with("apply -f -", std::str::from_utf8(&migrated.stdout).unwrap());
    let skyhook = site.skyhook("migrated");
    assert_eq!(
        (&skyhook["spec"]["deploymentPolicy"], &skyhook["spec"]["interruptionBudget"]),
        (&json!("legacy-equivalent"), &Value::Null)
    );
    let policy = site.access.get("deploymentpolicy legacy-equivalent");
    let default = &policy["spec"]["default"];
    assert_eq!(
        (&default["budget"], &default["strategy"]["fixed"]["initialBatch"]),
        (&json!({"percent": 25}), &json!(1))
    );
    let skyhooks = site.record_skyhook("migrated");
    site.patch("migrated", &json!({"spec": {"packages": {"tuning": package("1.0.1")}}}));
    let status = site.wait("migrated", "complete");
    assert_eq!(status["compartmentStatuses"]["__default__"]["ceiling"], 2);
    assert_eq!(batches(&skyhooks, &site.skyhook("migrated"), &site.nodes), [1; 8]);
}
