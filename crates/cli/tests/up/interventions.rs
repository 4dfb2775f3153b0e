//! Every verb that acts, on every kind that has it: a dry run changes nothing, the verb does, and
//! the rollout has a record of who asked, and why.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::daily::{apply, convoy, rollouts_of_all_dialects, web};
use crate::home::define;
use crate::running::{Running, command};

/// What is done to each rollout, in this order.
const ACTS: [(&str, &[&str]); 6] = [
    ("skyhook/tuning", &["pause", "resume", "abort", "resume", "retry", "reset --yes"]),
    ("deployment/web", &["pause", "resume", "retry", "undo"]),
    ("nodepool/general", &["pause", "resume"]),
    ("placement/stores", &["pause", "resume"]),
    ("clusterstagedupdaterun/first", &["pause", "resume", "abort", "resume", "approve"]),
    ("stagedupdaterun/second", &["pause", "resume", "abort", "resume", "approve --stage canary"]),
];

/// Kinds of objects that these verbs write.
const WRITTEN: &str = "skyhooks,nodes,deployments,nodepools,\
    placements.cluster.open-cluster-management.io,clusterstagedupdateruns,stagedupdateruns,\
    clusterapprovalrequests,approvalrequests";

/// A server on which nobody acts, with a rollout of each kind that can be acted on.
fn server(directory: &std::path::Path) -> Running {
    let running = Running::start_as(command(&directory.join("data")).arg("--controllers=none"));
    for dialect in ["skyhook", "fleet", "karpenter", "ocm"] {
        define(&running, dialect);
    }
    for object in rollouts_of_all_dialects() {
        apply(&running, &object);
    }
    updates_of_a_namespace(&running);
    two_revisions(&running);
    a_stopped_skyhook(&running);
    running
}

fn updates_of_a_namespace(running: &Running) {
    let fleet = "placement.kubernetes-fleet.io/v1beta1";
    let spec = json!({"placementName": "shop", "stagedRolloutStrategyName": "slow",
        "state": "Run"});
    apply(
        running,
        &json!({"apiVersion": fleet, "kind": "StagedUpdateRun",
        "metadata": {"name": "second"}, "spec": spec}),
    );
    apply(
        running,
        &json!({"apiVersion": fleet, "kind": "ApprovalRequest",
        "metadata": {"name": "second-after-canary"},
        "spec": {"parentStageRollout": "second", "targetStage": "canary"}}),
    );
}

/// A Deployment with ReplicaSets of two revisions.
fn two_revisions(running: &Running) {
    apply(running, &web("example/web:2"));
    let uid = running.get("deployment web")["metadata"]["uid"].clone();
    for (revision, image) in [("1", "example/web:1"), ("2", "example/web:2")] {
        let labels = json!({"app": "web", "pod-template-hash": revision});
        apply(
            running,
            &json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": format!("web-{revision}"), "labels": labels,
                "annotations": {"deployment.kubernetes.io/revision": revision},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                    "uid": uid, "controller": true}]},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template":
                {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": image}]}}}}),
        );
    }
}

/// A Skyhook that failures stopped, with state on a node.
fn a_stopped_skyhook(running: &Running) {
    let state = json!({"currentBatch": 2, "consecutiveFailures": 1, "shouldStop": true});
    let status = json!({"status": {"compartmentStatuses": {"__default__": {"matched": 1,
        "ceiling": 1, "inProgress": 0, "completed": 0, "progressPercent": 0,
        "batchState": state}}}});
    running.kubectl_with(
        "patch skyhook tuning --subresource=status --type=merge --patch-file=/dev/stdin",
        &status.to_string(),
    );
    let done = "skyhook.nvidia.com/status_tuning";
    apply(
        running,
        &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1",
        "labels": {done: "complete"}, "annotations": {done: "complete"}}}),
    );
}

/// The version of each object that a verb may write.
fn versions(running: &Running) -> Vec<Value> {
    let all = running.get(WRITTEN)["items"].take();
    let all = all.as_array().unwrap().iter();
    all.map(|object| object["metadata"]["resourceVersion"].clone()).collect()
}

#[test]
fn every_verb_is_recorded_with_who_asked_and_why() {
    let directory = tempfile::tempdir().unwrap();
    let running = server(directory.path());
    let mut text = String::new();
    for (rollout, verbs) in ACTS {
        for (at, call) in verbs.iter().enumerate() {
            let before = versions(&running);
            let dry = convoy(&running, &format!("{call} {rollout} --dry-run")).ok();
            assert_eq!(versions(&running), before, "a dry run of {call} {rollout} wrote");
            _ = write!(text, "$ convoy {call} {rollout} --dry-run\n{dry}");
            let reason = format!("change {at} of {rollout}");
            let user = "--as ann --as-group system:masters";
            let did =
                convoy(&running, &format!("{call} {rollout} {user} --reason '{reason}'")).ok();
            assert_ne!(versions(&running), before, "{call} {rollout} wrote nothing");
            _ = write!(text, "$ convoy {call} {rollout} {user} --reason '{reason}'\n{did}");
            let history = convoy(&running, &format!("history {rollout} -o json")).ok();
            let history: Value = serde_json::from_str(&history).unwrap();
            let records = history["interventions"].as_array().unwrap();
            assert_eq!(records.len(), at + 1, "{rollout}: {history}");
            let record = &records[at];
            let verb = call.split(' ').next().unwrap();
            assert_eq!(record["verb"], verb, "{rollout}: {history}");
            assert_eq!(record["actor"], "ann", "{call} {rollout}: {history}");
            assert_eq!(record["reason"], reason, "{call} {rollout}: {history}");
        }
    }
    let golden = format!("{}/tests/golden/daily/acts.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(golden, &text);
    every_format_is_printed(&running);
    the_other_kinds_refuse(&running);
    kinds_that_cannot_be_read_hold_their_rollouts(&running);
}

fn every_format_is_printed(running: &Running) {
    for (rollout, _) in ACTS {
        let print =
            |format: &str| convoy(running, &format!("pause {rollout} --dry-run -o {format}")).ok();
        let json: Value = serde_json::from_str(&print("json")).unwrap();
        assert_eq!((&json["verb"], &json["dryRun"]), (&json!("pause"), &json!(true)), "{json}");
        assert!(!json["writes"].as_array().unwrap().is_empty(), "{json}");
        assert!(print("yaml").contains("dryRun: true\n"));
        assert_eq!(print("wide"), print("table"));
        let (name, words) = (print("name"), rollout.split_once('/').unwrap());
        assert!(name.starts_with(words.0) && name.ends_with(&format!("/{}\n", words.1)), "{name}");
        assert_eq!(name.lines().count(), 1, "{name}");
    }
}

/// Those of other dialects are in `daily.rs`.
fn the_other_kinds_refuse(running: &Running) {
    let fleet = "placement.kubernetes-fleet.io/v1beta1";
    let selector = json!({"group": "", "version": "v1", "kind": "ConfigMap", "name": "settings"});
    let (labels, containers) = (json!({"of": "alone"}), json!([{"name": "c", "image": "c"}]));
    for object in [
        json!({"apiVersion": fleet, "kind": "ResourcePlacement", "metadata": {"name": "boxed"},
            "spec": {"resourceSelectors": [selector]}}),
        json!({"apiVersion": fleet, "kind": "ClusterResourcePlacementEviction",
            "metadata": {"name": "drain"}, "spec": {"placementName": "shop", "clusterName": "a"}}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "alone"},
            "spec": {"selector": {"matchLabels": labels}, "template":
                {"metadata": {"labels": labels}, "spec": {"containers": containers}}}}),
    ] {
        apply(running, &object);
    }
    let mut text = String::new();
    let kinds = ["deployment/web", "replicaset/alone", "rp/boxed", "crpe/drain", "sur/second"];
    for rollout in kinds {
        for verb in ["pause", "resume", "abort", "retry", "undo", "approve", "reset"] {
            let ran = convoy(running, &format!("{verb} {rollout} --dry-run"));
            _ = write!(text, "$ convoy {verb} {rollout} --dry-run\n{}", ran.said());
        }
    }
    let golden = format!("{}/tests/golden/daily/refusals.txt", env!("CARGO_MANIFEST_DIR"));
    expectorate::assert_contents(golden, &text);
}

/// Nothing is concluded from what a user may not read: `why` says what is missing.
fn kinds_that_cannot_be_read_hold_their_rollouts(running: &Running) {
    running.kubectl("create clusterrole hooks --verb=list --resource=skyhooks.skyhook.nvidia.com");
    running.kubectl("create clusterrolebinding hooks --clusterrole=hooks --user=hal");
    let why = convoy(running, "why skyhook/tuning --as hal").ok();
    let missing = "objects of kind skyhook.nvidia.com/DeploymentPolicy are not known yet: \
                   deploymentpolicies.skyhook.nvidia.com is forbidden";
    assert!(why.contains(missing), "{why}");
    assert!(why.contains("freed when these objects can be read"), "{why}");
}
