//! Batches after resets, joins and completed rollouts, in the embedded home and through
//! `kubectl skyhook`: a batch is scored by its own nodes, and a new run begins at batch 1.

use serde_json::{Value, json};

use super::policies::batches;
use super::record::Record;
use super::site::{APPLY, Site};
use super::words::{package, package_with, word};
use crate::kubectl_skyhook::Plugin;

const NAME: &str = "paced";

/// Nodes of its own, the first `members` of which a Skyhook of one package paces by `strategy`.
fn site(nodes: usize, members: usize, policy: &Value, package: &Value) -> Site {
    let site = Site::alone_of(nodes, &[]);
    site.label(0..members, "site=alone");
    site.apply("DeploymentPolicy", NAME, policy);
    site.apply("Skyhook", NAME, &site.paced(NAME, &json!({"tuning": package})));
    site
}

fn policy(strategy: Value, resets: bool) -> Value {
    json!({"resetBatchStateOnCompletion": resets,
        "default": {"budget": {"percent": 100}, "strategy": strategy}})
}

fn exponential() -> Value {
    json!({"exponential": {}})
}

fn batch_state(skyhook: &Value) -> &Value {
    &skyhook["status"]["compartmentStatuses"]["__default__"]["batchState"]
}

/// Waits until so many nodes are complete, and gives back the batches since the record began.
fn complete(site: &Site, skyhooks: &Record, count: usize) -> Vec<usize> {
    let done = format!("{count}/{count}");
    let is_done = |skyhook: &Value| {
        skyhook["status"]["status"] == "complete" && skyhook["status"]["completeNodes"] == done
    };
    batches(skyhooks, &site.skyhook_until(NAME, is_done), &site.nodes)
}

#[test]
fn a_reset_of_complete_nodes_starts_one_node_then_two() {
    let site = site(51, 51, &policy(exponential(), true), &package("1.0.0"));
    let plugin = Plugin::new(&site);
    site.wait(NAME, "complete");
    for attempt in 0..2 {
        // The first node that starts does not get further until the command is done.
        site.hold(0..51, APPLY);
        let skyhooks = site.record_skyhook(NAME);
        let text = plugin.run("reset paced -y");
        assert!(text.contains("Successfully reset 51 node(s)"), "{text}");
        assert!(text.ends_with("Batch state reset for Skyhook \"paced\"\n"), "{text}");
        site.skyhook_until(NAME, |skyhook| skyhook["status"]["status"] == "in_progress");
        site.let_go(0..51);
        assert_eq!(complete(&site, &skyhooks, 51), [1, 2, 4, 8, 16, 20], "attempt {attempt}");
    }
}

#[test]
fn nodes_that_join_a_complete_compartment_start_from_batch_one() {
    let site = site(27, 7, &policy(exponential(), true), &package("1.0.0"));
    site.wait(NAME, "complete");
    for (joining, expected) in [(7..19, vec![1, 2, 4, 5]), (19..27, vec![1, 2, 4, 1])] {
        site.hold(joining.clone(), APPLY);
        let skyhooks = site.record_skyhook(NAME);
        site.label(joining.clone(), "site=alone");
        site.skyhook_until(NAME, |skyhook| {
            skyhook["status"]["compartmentStatuses"]["__default__"]["matched"] == joining.end
        });
        site.let_go(joining.clone());
        assert_eq!(complete(&site, &skyhooks, joining.end), expected);
    }
}

#[test]
fn a_reset_of_batches_after_a_stop_tries_as_many_again() {
    for threshold in [1, 3] {
        let strategy = json!({"fixed": {"initialBatch": 1, "failureThreshold": threshold}});
        let broken = json!({"env": [{"name": "EXIT_CODE", "value": "2"}]});
        let site = site(14, 14, &policy(strategy, true), &package_with("1.0.0", broken));
        let plugin = Plugin::new(&site);
        let stopped = |failed: usize| {
            let nodes = || site.access.get("nodes");
            site.skyhook_until(NAME, |skyhook| batch_state(skyhook)["shouldStop"] == true);
            let all = nodes()["items"].as_array().unwrap().clone();
            assert_eq!(all.iter().filter(|one| word(one, NAME) == "erroring").count(), failed);
        };
        stopped(threshold);
        plugin.run("deployment-policy reset paced --confirm");
        stopped(2 * threshold);
        let state = batch_state(&site.skyhook(NAME)).clone();
        let counts = (&state["consecutiveFailures"], &state["failedNodes"], &state["currentBatch"]);
        assert_eq!(counts, (&json!(threshold), &json!(threshold), &json!(threshold + 1)));
    }
}

#[test]
fn a_reset_of_nodes_alone_leaves_the_batch_state_as_it_was() {
    let site = site(6, 6, &policy(json!({"linear": {}}), false), &package("1.0.0"));
    let plugin = Plugin::new(&site);
    site.wait(NAME, "complete");
    let before = batch_state(&site.skyhook(NAME)).clone();
    assert_eq!(before, json!({"currentBatch": 4, "completedNodes": 6, "lastBatchSize": 3}));
    site.hold(0..6, APPLY);
    let skyhooks = site.record_skyhook(NAME);
    let text = plugin.run("reset paced --skip-batch-reset -y");
    assert!(!text.contains("Batch state"), "{text}");
    let running = site.skyhook_until(NAME, |skyhook| skyhook["status"]["nodesInProgress"] != 0);
    assert_eq!(*batch_state(&running), before);
    site.let_go(0..6);
    let batches = complete(&site, &skyhooks, 6);
    assert!(batches[0] <= 4 && batches.iter().sum::<usize>() == 6, "{batches:?}");
    for (_, skyhook) in skyhooks.all(&site.skyhook(NAME)) {
        assert!(batch_state(&skyhook)["currentBatch"].as_u64() >= Some(4), "{skyhook}");
    }
}

#[test]
fn where_state_is_kept_the_next_run_goes_on_from_the_last_batch() {
    let site = site(7, 7, &policy(exponential(), false), &package("1.0.0"));
    site.wait(NAME, "complete");
    let state = batch_state(&site.skyhook(NAME)).clone();
    assert_eq!(state, json!({"currentBatch": 4, "completedNodes": 7, "lastBatchSize": 4}));
    let skyhooks = site.record_skyhook(NAME);
    site.apply("Skyhook", NAME, &site.paced(NAME, &json!({"tuning": package("1.1.0")})));
    site.wait(NAME, "complete");
    assert_eq!(batches(&skyhooks, &site.skyhook(NAME), &site.nodes), [7]);
}
