//! Policies pace rollouts: the policy scenarios of upstream's own suite, in both homes, with every
//! change of every node and every status looked at afterwards.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::record::{Record, course, words};
use super::site::{APPLY, Site, in_both_homes};
use super::words::{package, package_with, word};
use crate::scrape::scrape_until;

in_both_homes! {
    linear_strategy on 8,
    multi_compartment on 15,
    overlapping_selectors on 6,
    legacy_compatibility on 6,
    batch_state_reset on 8,
}

/// A package without and one with an interrupt.
pub(crate) fn packages(version: &str) -> Value {
    let driver = json!({"dependsOn": {"tuning": version}, "interrupt": {"type": "reboot"}});
    json!({"tuning": package(version), "driver": package_with(version, driver)})
}

/// A policy of one compartment.
pub(crate) fn policy(site: &Site, name: &str, budget: &Value, strategy: &Value) {
    site.apply(
        "DeploymentPolicy",
        name,
        &json!({"default": {"budget": budget, "strategy": strategy}}),
    );
}

/// How many of some nodes were picked at once, batch by batch.
pub(crate) fn batches(skyhook: &Record, now: &Value, among: &[String]) -> Vec<usize> {
    let mut before = BTreeSet::new();
    let mut batches = Vec::new();
    for (_, object) in skyhook.all(now) {
        let picked = object["status"]["nodePriority"].as_object().into_iter().flatten();
        let picked: BTreeSet<String> =
            picked.map(|(name, _)| name.clone()).filter(|name| among.contains(name)).collect();
        let new = picked.difference(&before).count();
        if new > 0 {
            batches.push(new);
        }
        before = picked;
    }
    batches
}

/// The most of some nodes that were in progress at one instant.
pub(crate) fn most(site: &Site, nodes: &Record, skyhook: &str, among: &[String]) -> usize {
    let last = site.node(0);
    course(&words(&nodes.all(&last), skyhook), among).into_iter().max().unwrap_or(0)
}

/// A compartment's status.
fn compartment<'s>(status: &'s Value, name: &str) -> &'s Value {
    &status["compartmentStatuses"][name]
}

/// Waits until these numbers are served about a compartment, given as its Skyhook, policy, name
/// and strategy.
fn serves(site: &Site, of: [&str; 4], numbers: &[(&str, usize)]) {
    let [skyhook, policy, name, strategy] = of;
    let labels = format!(
        r#"skyhook_name="{skyhook}",policy_name="{policy}",compartment_name="{name}",strategy="{strategy}""#
    );
    let line =
        |(metric, value): &(&str, usize)| format!("skyhook_rollout_{metric}{{{labels}}} {value}");
    let lines: Vec<String> = numbers.iter().map(line).collect();
    scrape_until(site.metrics.unwrap(), &lines);
}

fn linear_strategy(site: &Site) {
    policy(
        site,
        "linear",
        &json!({"count": 4}),
        &json!({"linear": {"initialBatch": 1, "delta": 1}}),
    );
    let (nodes, skyhooks) = (site.record_nodes(), site.record_skyhook("linear"));
    site.apply("Skyhook", "linear", &site.paced("linear", &packages("1.0.0")));
    let status = site.wait("linear", "complete");
    let all = compartment(&status, "__default__");
    assert_eq!(
        (&all["matched"], &all["ceiling"], &all["completed"]),
        (&json!(8), &json!(4), &json!(8))
    );
    assert_eq!((&all["progressPercent"], &all["inProgress"]), (&json!(100), &json!(0)));
    let numbers = [("matched_nodes", 8), ("ceiling", 4), ("completed", 8), ("in_progress", 0)];
    serves(site, ["linear", "linear", "__default__", "linear"], &numbers);
    assert_eq!(batches(&skyhooks, &site.skyhook("linear"), &site.nodes), [1, 2, 3, 2]);
    assert!(most(site, &nodes, "linear", &site.nodes) <= 3);
    // How far it was when each batch was scored.
    for (completed, batch) in [(1, 2), (3, 3), (6, 4)] {
        skyhooks.find("progress", |skyhook| {
            let all = compartment(&skyhook["status"], "__default__");
            all["completed"] == completed
                && all["batchState"]["currentBatch"] == batch
                && all["batchState"]["consecutiveFailures"].is_null()
        });
    }
}

fn multi_compartment(site: &Site) {
    site.label(0..5, "tier=critical");
    site.label(5..11, "tier=standard");
    site.label(11..15, "tier=test");
    let compartment_of = |name: &str, budget: Value, first: u32| {
        json!({"name": name, "budget": budget, "selector": {"matchLabels": {"tier": name}},
            "strategy": {"exponential": {"initialBatch": first}}})
    };
    let compartments = [
        compartment_of("critical", json!({"count": 2}), 1),
        compartment_of("standard", json!({"percent": 33}), 1),
        compartment_of("test", json!({"percent": 50}), 2),
    ];
    site.apply(
        "DeploymentPolicy",
        "multi",
        &json!({"default": {"budget": {"count": 1}}, "compartments": compartments}),
    );
    let (nodes, skyhooks) = (site.record_nodes(), site.record_skyhook("multi"));
    site.apply("Skyhook", "multi", &site.paced("multi", &json!({"tuning": package("1.0.0")})));
    let status = site.wait("multi", "complete");
    let now = site.skyhook("multi");
    for (name, range, ceiling, expected) in [
        ("critical", 0..5, 2, vec![1, 2, 2]),
        ("standard", 5..11, 1, vec![1; 6]),
        ("test", 11..15, 2, vec![2, 2]),
    ] {
        let told = compartment(&status, name);
        let among = &site.nodes[range];
        assert_eq!(
            (&told["matched"], &told["ceiling"]),
            (&json!(among.len()), &json!(ceiling)),
            "{name}"
        );
        assert_eq!(told["progressPercent"], 100, "{name}");
        let numbers =
            [("matched_nodes", among.len()), ("ceiling", ceiling), ("completed", among.len())];
        serves(site, ["multi", "multi", name, "exponential"], &numbers);
        assert_eq!(batches(&skyhooks, &now, among), expected, "{name}");
        assert!(most(site, &nodes, "multi", among) <= ceiling, "{name}");
    }
}

fn overlapping_selectors(site: &Site) {
    site.label(0..2, "region=us-west");
    site.label(2..4, "env=production");
    site.label(4..6, "region=us-west env=production");
    let fixed = json!({"fixed": {"initialBatch": 1}});
    let wide = json!({"exponential": {"initialBatch": 1}});
    let compartments = json!([
        {"name": "us-west", "budget": {"count": 2}, "strategy": wide, "selector": {"matchLabels": {"region": "us-west"}}},
        {"name": "production", "budget": {"count": 2}, "strategy": wide, "selector": {"matchLabels": {"env": "production"}}},
        {"name": "prod-us-west", "budget": {"count": 1}, "strategy": fixed,
            "selector": {"matchLabels": {"region": "us-west", "env": "production"}}},
    ]);
    site.apply(
        "DeploymentPolicy",
        "overlap",
        &json!({"default": {"budget": {"count": 1}}, "compartments": compartments}),
    );
    site.hold(0..6, APPLY);
    let nodes = site.record_nodes();
    site.apply("Skyhook", "overlap", &site.paced("overlap", &json!({"tuning": package("1.0.0")})));
    let found = site.access.until(&format!("nodes -l site={}", site.name), |nodes| {
        let count = |wanted: &str| {
            let nodes = nodes["items"].as_array().unwrap().iter();
            nodes.filter(|node| word(node, "overlap") == wanted).count()
        };
        (count("in_progress"), count("waiting")) == (3, 3)
    });
    assert_eq!(found["items"].as_array().unwrap().len(), 6);
    site.let_go(0..6);
    let status = site.wait("overlap", "complete");
    for (name, ceiling) in [("us-west", 2), ("production", 2), ("prod-us-west", 1)] {
        let told = compartment(&status, name);
        assert_eq!((&told["matched"], &told["ceiling"]), (&json!(2), &json!(ceiling)), "{name}");
    }
    assert_eq!(
        most(site, &nodes, "overlap", &site.nodes[4..6]),
        1,
        "the strictest keeps what both select"
    );
}

fn legacy_compatibility(site: &Site) {
    let (nodes, skyhooks) = (site.record_nodes(), site.record_skyhook("legacy"));
    let mut spec = site.spec(&json!({"tuning": package("1.0.0")}));
    spec["interruptionBudget"] = json!({"count": 3});
    site.apply("Skyhook", "legacy", &spec);
    let status = site.wait("legacy", "complete");
    let all = compartment(&status, "__default__");
    assert_eq!((&all["matched"], &all["ceiling"]), (&json!(6), &json!(3)));
    let numbers = [("matched_nodes", 6), ("ceiling", 3), ("completed", 6)];
    serves(site, ["legacy", "legacy", "__default__", "fixed"], &numbers);
    assert_eq!(batches(&skyhooks, &site.skyhook("legacy"), &site.nodes), [3, 3]);
    assert!(most(site, &nodes, "legacy", &site.nodes) <= 3);
}

/// Batch state is forgotten when a rollout is complete, unless the Skyhook says otherwise.
fn batch_state_reset(site: &Site) {
    site.apply(
        "DeploymentPolicy",
        "reset",
        &json!({"resetBatchStateOnCompletion": true,
        "default": {"budget": {"count": 2}, "strategy": {"exponential": {}}}}),
    );
    let mut spec = site.paced("reset", &json!({"tuning": package("1.0.0")}));
    site.apply("Skyhook", "reset", &spec);
    let status = site.wait("reset", "complete");
    let all = compartment(&status, "__default__");
    assert_eq!(
        (&all["progressPercent"], &all["batchState"]),
        (&json!(100), &json!({"currentBatch": 1}))
    );
    spec["deploymentPolicyOptions"] = json!({"resetBatchStateOnCompletion": false});
    site.apply("Skyhook", "reset-kept", &spec);
    let status = site.wait("reset-kept", "complete");
    let kept = &compartment(&status, "__default__")["batchState"];
    assert!(kept["currentBatch"].as_i64() > Some(1), "{kept}");
}
