//! No compartment has more nodes in progress than its ceiling and its batch allow, at no instant,
//! while nodes come, go and change their labels.

mod crowd;
mod log;

use http::Method;
use serde_json::{Value, json};

use crate::stage::{Stage, convoy, until};
use crowd::Crowd;
use log::Log;

/// Every pool is a compartment but the last, which is what no compartment selects.
const POOLS: [&str; 4] = ["a", "b", "c", "d"];

pub(crate) const SCENARIO: &str = "
nodes:
- {name: a, count: 4, labels: {fleet: 'yes', pool: a}}
- {name: b, count: 3, labels: {fleet: 'yes', pool: b}}
- {name: c, count: 1, labels: {fleet: 'yes', pool: c}}
- {name: d, count: 3, labels: {fleet: 'yes', pool: d}}
latencies: {pull: 1ms..20ms, start: 1ms..20ms, init: 5ms..60ms, stop: 1ms..20ms}
rules:
- when: {package: {name: tuning, version: 1.0.2}, node: a-0}
  then: {fails: crash, after: 5ms}
- when: {package: {interrupt: node_restart}}
  then: {reboots: 50ms..300ms}
";

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/skyhook/pods";
pub(crate) const SKYHOOKS: &str = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks";
const POLICIES: &str = "/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies";

/// All strategies, and none; `budget` is that of the first pool. The last pool may have batches
/// of three, and two nodes in progress.
fn policy(budget: &Value) -> Value {
    let compartment = |pool: &str, budget: &Value, strategy: Option<Value>| {
        let mut compartment =
            json!({"name": pool, "budget": budget, "selector": {"matchLabels": {"pool": pool}}});
        if let Some(strategy) = strategy {
            compartment["strategy"] = strategy;
        }
        compartment
    };
    json!({"default": {"budget": {"count": 2}, "strategy": {"fixed": {"initialBatch": 3}}},
    "compartments": [
        compartment("a", budget, Some(json!({"exponential": {"initialBatch": 1}}))),
        compartment("b", &json!({"count": 3}), Some(json!({"linear": {"initialBatch": 1, "delta": 1}}))),
        compartment("c", &json!({"count": 1}), None),
    ]})
}

fn packages(version: &str) -> Value {
    json!({"tuning": {"version": version, "image": "example/tuning"},
        "driver": {"version": version, "image": "example/driver", "interrupt": {"type": "reboot"}}})
}

async fn create(stage: &Stage, path: &str, kind: &str, name: &str, spec: &Value) {
    let object = json!({"apiVersion": "skyhook.nvidia.com/v1alpha1", "kind": kind,
        "metadata": {"name": name}, "spec": spec});
    stage.send(Method::POST, path, object).await;
}

pub(crate) async fn set_version(stage: &Stage, version: &str) {
    let patch = json!({"spec": {"packages": packages(version)}});
    stage.send(Method::PATCH, &format!("{SKYHOOKS}/tuning"), patch).await;
}

/// Kinds, namespace and policy.
pub(crate) async fn furnish(stage: &Stage) {
    let definitions = convoy().args(["crds", "--dialect", "skyhook"]).output().unwrap().stdout;
    let definitions = String::from_utf8(definitions).unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for text in definitions.split("\n---\n") {
        let definition: Value = serde_saphyr::from_str(text).unwrap();
        stage.send(Method::POST, path, definition).await;
    }
    let namespace = json!({"metadata": {"name": "skyhook"}});
    stage.send(Method::POST, "/api/v1/namespaces", namespace).await;
    // A kind is served a moment after its definition is there.
    until("served", async || {
        let request = http::Request::get(POLICIES).body(Vec::new()).unwrap();
        stage.client.request_text(request).await.map_err(|error| json!(error.to_string()))
    })
    .await;
    create(stage, POLICIES, "DeploymentPolicy", "pace", &policy(&json!({"percent": 50}))).await;
}

/// Every write that matters to compartments.
pub(crate) async fn follow(stage: &Stage) -> Log {
    Log::follow(stage, [NODES, PODS, SKYHOOKS, POLICIES]).await
}

pub(crate) async fn create_skyhook(stage: &Stage) {
    let spec = json!({"deploymentPolicy": "pace", "packages": packages("1.0.1"),
        "nodeSelectors": {"matchLabels": {"fleet": "yes"}}});
    create(stage, SKYHOOKS, "Skyhook", "tuning", &spec).await;
}

/// Waits until the loop has seen everything and is done with it; the version at which it said so.
/// It has seen every node that is older than `newest`: events of one kind come in order.
async fn rest(stage: &Stage, newest: &str) -> u64 {
    let policy = stage.get(&format!("{POLICIES}/pace")).await;
    let nodes = stage.get(NODES).await;
    let nodes = nodes["items"].as_array().unwrap().iter();
    let pools: Vec<&str> = nodes
        .filter(|node| node["metadata"]["labels"]["fleet"] == "yes")
        .map(|node| node["metadata"]["labels"]["pool"].as_str().unwrap())
        .collect();
    let is_known = |statuses: &Value, pool: &str| {
        let members = pools.iter().filter(|found| **found == pool).count();
        let members = u64::try_from(members).unwrap();
        let mut terms = policy["spec"]["compartments"].as_array().unwrap().iter();
        let listed = terms.find(|terms| terms["name"] == pool);
        let budget = &listed.unwrap_or(&policy["spec"]["default"])["budget"];
        let share = |percent: u64| (members * percent / 100).max(1).min(members);
        let ceiling = budget["count"].as_u64().or_else(|| budget["percent"].as_u64().map(share));
        let status = &statuses[if listed.is_some() { pool } else { "__default__" }];
        status["matched"] == members && status["ceiling"].as_u64() == ceiling
    };
    until("complete", async || {
        let skyhook = stage.get(&format!("{SKYHOOKS}/tuning")).await;
        let status = &skyhook["status"];
        let is_so = status["status"] == "complete"
            && status["observedGeneration"] == skyhook["metadata"]["generation"]
            && status["nodeStatus"][newest] == "complete"
            && POOLS.iter().all(|pool| is_known(&status["compartmentStatuses"], pool));
        if is_so { Ok(log::version(&skyhook)) } else { Err(skyhook) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_compartment_has_more_in_progress_than_it_may() {
    let stage = Stage::set(SCENARIO).await;
    furnish(&stage).await;
    let log = follow(&stage).await;
    create_skyhook(&stage).await;
    let lives = stage.play("skyhook", (10, 60)).await;
    let mut crowd = Crowd::new(&stage);
    let first = rest(&stage, &crowd.stir().await).await;
    // The budget is cut while one node fails; the next version goes on from there.
    set_version(&stage, "1.0.2").await;
    crowd.stir().await;
    let cut = json!({"spec": policy(&json!({"count": 1}))});
    stage.send(Method::PATCH, &format!("{POLICIES}/pace"), cut).await;
    until("erroring", async || {
        let node = stage.get(&format!("{NODES}/a-0")).await;
        let annotations = &node["metadata"]["annotations"];
        let is_so = annotations["skyhook.nvidia.com/status_tuning"] == "erroring";
        if is_so { Ok(()) } else { Err(node) }
    })
    .await;
    set_version(&stage, "1.0.3").await;
    rest(&stage, &crowd.stir().await).await;
    let (deaths, faults) = lives.end().await;
    let seen = log.complete(&stage).await;
    log.judge(&[first], |_| {}).unwrap();
    // What it holds things against matters: with less allowed it finds more.
    log.judge(&[first], |terms| terms["budget"] = json!({"count": 1})).unwrap_err();
    log.judge(&[first], |terms| terms["strategy"] = json!({"fixed": {"initialBatch": 1}}))
        .unwrap_err();
    assert!(
        deaths >= 3 && faults >= 20 && seen >= 500,
        "{deaths} deaths, {faults} faults, {seen} seen"
    );
}
