//! Batches after resets, joins and completed rollouts, in the embedded home and through
//! `kubectl skyhook`: a batch is scored by its own nodes, and a new run begins at batch 1.

use std::process::Command;

use serde_json::{Value, json};

use super::policies::batches;
use super::record::Record;
use super::site::{APPLY, Site};
use super::words::{package, package_with, word};
use crate::access::split;
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

/// What a daily command prints, and its exit status.
fn convoy(site: &Site, arguments: &str) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoy"));
    let output = command.args(split(arguments)).env("KUBECONFIG", &site.access.kubeconfig).output();
    let output = output.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

#[test]
fn convoy_retries_a_stopped_skyhook_and_resets_a_complete_one() {
    let site = Site::alone_of(6, &[]);
    site.label(0..6, "site=alone");
    let rules = "[{when: {package: {stage: apply}}, then: {fails: crash, after: 5ms}}]";
    let names = site.nodes.join(" ");
    site.access.kubectl(&format!("annotate nodes {names} 'sim.convoy.dev/rules={rules}'"));
    let strategy = json!({"fixed": {"initialBatch": 2, "failureThreshold": 1}});
    site.apply("DeploymentPolicy", NAME, &policy(strategy, true));
    let packages = json!({"tuning": package("1.0.0")});
    site.apply("Skyhook", NAME, &site.paced(NAME, &packages));
    site.skyhook_until(NAME, |skyhook| batch_state(skyhook)["shouldStop"] == true);

    // A dry run leaves the pods that failed where they are.
    let pods =
        || site.access.kubectl("get pods --namespace skyhook -o jsonpath={.items[*].metadata.uid}");
    let before = pods();
    assert!(!before.is_empty(), "the pods that failed are there");
    let (text, code) = convoy(&site, "retry skyhook/paced --dry-run");
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(batch_state(&site.skyhook(NAME))["shouldStop"], true);
    assert_eq!(pods(), before, "{text}");

    // The cause is gone, and nothing else starts by itself.
    site.let_go(0..6);
    let (text, code) = convoy(&site, "retry skyhook/paced --reason 'the image is mended'");
    assert_eq!(code, Some(0), "{text}");
    site.wait(NAME, "complete");
    let (text, code) = convoy(&site, "retry paced");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("has no failed package and no stopped compartment"), "{text}");

    site.no_pods(NAME);
    site.hold(0..6, APPLY);
    let (skyhooks, pods) = (site.record_skyhook(NAME), site.record_pods(NAME));
    let (text, code) = convoy(&site, "reset paced --yes");
    assert_eq!(code, Some(0), "{text}");
    site.skyhook_until(NAME, |skyhook| skyhook["status"]["status"] == "in_progress");
    site.let_go(0..6);
    // A batch may begin before all nodes have forgotten, and is smaller then.
    let batches = complete(&site, &skyhooks, 6);
    assert!(batches.iter().all(|batch| *batch <= 2), "{batches:?}");
    assert_eq!(batches.iter().sum::<usize>(), 6, "{batches:?}");
    assert_eq!(pods.stages(12).len(), 12, "apply and config of every node");
    let (text, _) = convoy(&site, "history paced");
    assert!(text.contains("the image is mended") && text.contains("reset"), "{text}");
}
