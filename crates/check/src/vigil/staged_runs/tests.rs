//! What the watcher of runs finds, and what it lets pass.

use convoy_testkit::{NOW, fleet, object};
use serde_json::{Value, json};

use super::*;

/// A run over two stages, of which the clusters in `done` have succeeded.
fn run(done: &[&str]) -> Object {
    let stage = |name: &str, clusters: &[&str]| {
        let cluster = |name: &&str| {
            let succeeded = fleet::condition("Succeeded", "True", "Done", 1, NOW);
            let conditions: Vec<Value> =
                done.contains(name).then_some(succeeded).into_iter().collect();
            json!({"clusterName": name, "conditions": conditions})
        };
        json!({"stageName": name, "clusters": clusters.iter().map(cluster).collect::<Vec<_>>()})
    };
    let stages = json!([
        {"name": "canary", "maxConcurrency": 1, "afterStageTasks": [{"type": "Approval"}]},
        {"name": "prod", "maxConcurrency": 2}]);
    fleet::run("one", "web", "rings", "")
        .status(json!({"resourceSnapshotIndexUsed": "1",
            "stagedUpdateStrategySnapshot": {"stages": stages},
            "stagesStatus": [stage("canary", &["a", "b"]), stage("prod", &["c"])]}))
        .build()
}

fn binding(cluster: &str, snapshot: &str) -> Object {
    fleet::binding("web", cluster, "Bound", snapshot).with("/metadata/generation", json!(1)).build()
}

fn available(cluster: &str) -> Object {
    let condition = fleet::condition("Available", "True", "AllWorkAreAvailable", 1, NOW);
    let mut raw = binding(cluster, "web-1-snapshot").raw().clone();
    raw["status"] = json!({"conditions": [condition]});
    Object::from_value(raw).unwrap()
}

fn approval() -> Object {
    let condition = fleet::condition("Approved", "True", "ByHand", 1, NOW);
    object("placement.kubernetes-fleet.io/v1beta1", "ClusterApprovalRequest", "one-after-canary")
        .status(json!({"conditions": [condition]}))
        .build()
}

/// A placement that only runs move, with the old resources on three clusters, and a run.
fn begun() -> StagedRuns {
    let mut runs = StagedRuns::default();
    let policy = json!({"placementType": "PickAll"});
    let placement = fleet::placement("web", policy).with("/spec/strategy/type", json!("External"));
    let members = ["a", "b", "c"].map(|name| fleet::member(name, NOW).build());
    let old = ["a", "b", "c"].map(|name| binding(name, "web-0-snapshot"));
    for object in [placement.build()].iter().chain(&members).chain(&old).chain([&run(&[])]) {
        runs.see(object, false, Hand::Loop).unwrap();
    }
    runs
}

fn seen(runs: &mut StagedRuns, objects: &[Object]) -> Result<(), String> {
    objects.iter().try_for_each(|object| runs.see(object, false, Hand::Loop))
}

fn found(runs: &mut StagedRuns, objects: &[Object]) -> String {
    seen(runs, objects).unwrap_err()
}

#[test]
fn a_run_that_keeps_to_its_stages_is_let_pass() {
    let new = |cluster| binding(cluster, "web-1-snapshot");
    let writes = [new("a"), available("a"), new("b"), available("b"), run(&["a", "b"])];
    let mut runs = begun();
    seen(&mut runs, &writes).unwrap();
    seen(&mut runs, &[approval(), new("c"), available("c"), run(&["a", "b", "c"])]).unwrap();
    let gone = binding("a", "web-1-snapshot");
    runs.see(&gone, true, Hand::Loop).unwrap();
}

#[test]
fn one_cluster_too_many_is_found() {
    let new = |cluster| binding(cluster, "web-1-snapshot");
    let told = found(&mut begun(), &[new("a"), new("b")]);
    assert_eq!(told, "stage canary of run one has 2 clusters in progress; 1 may be");
}

#[test]
fn a_stage_that_begins_too_early_is_found() {
    let new = |cluster| binding(cluster, "web-1-snapshot");
    let told = found(&mut begun(), &[new("a"), available("a"), approval(), new("c")]);
    assert!(told.contains("before cluster b of the stage before it"), "{told}");
    let done = [new("a"), available("a"), new("b"), available("b"), run(&["a", "b"])];
    let mut runs = begun();
    seen(&mut runs, &done).unwrap();
    let told = found(&mut runs, &[new("c")]);
    assert!(told.contains("before one-after-canary was approved"), "{told}");
}

#[test]
fn a_removal_that_no_run_asks_for_is_found() {
    let gone = binding("a", "web-0-snapshot");
    let told = begun().see(&gone, true, Hand::Loop).unwrap_err();
    assert_eq!(told, "cluster a loses its resources, and no run deletes them");
    begun().see(&gone, true, Hand::Other).unwrap();
    let mut left = begun();
    let member: Value = fleet::member("a", NOW).build().raw().clone();
    left.see(&Object::from_value(member).unwrap(), true, Hand::Other).unwrap();
    left.see(&gone, true, Hand::Loop).unwrap();
}
