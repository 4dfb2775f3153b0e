//! A Deployment has as many pods as promised, and no more.

use std::sync::{Arc, Mutex};

use convoy_api::Object;
use convoy_check::{Hand, Vigil};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::stage::{Stage, until};
use crate::watcher::Watcher;

pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
const REPLICAS: u64 = 6;

pub(crate) fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "web", "image": "web:0"}]}}}})
}

pub(crate) fn is_complete(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && counts.iter().all(|count| status[*count] == json!(REPLICAS))
}

/// Waits until a rollout is complete; nothing that the watcher sees may break the promise.
async fn roll(stage: &Stage, watcher: &Watcher, image: &str) {
    let containers = json!([{"name": "web", "image": image}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let path = format!("{DEPLOYMENTS}/web");
    stage.send(Method::PATCH, &path, patch).await;
    until("rolled out", async || {
        watcher.approve();
        let deployment = stage.get(&path).await;
        if is_complete(&deployment) { Ok(()) } else { Err(deployment) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_holds_while_the_loop_dies_and_its_connection_fails() {
    let stage = Stage::set("nodes: [{count: 3}]").await;
    let made = stage.send(Method::POST, DEPLOYMENTS, deployment()).await;
    let mut vigil = Vigil::default();
    let made = Object::from_value(made).unwrap();
    vigil.see(&made, false, Hand::Other, Timestamp::now()).unwrap();
    let vigil = Arc::new(Mutex::new(vigil));
    let seen = Arc::clone(&vigil);
    // Simulated nodes do not fail here: whatever pods lose, the loop took.
    let watcher = Watcher::start(stage.client.clone(), PODS, move |pod, is_gone| {
        seen.lock().unwrap().see(pod, is_gone, Hand::Loop, Timestamp::now())
    });
    let watcher = watcher.await;
    let lives = stage.play("apps,replicasets", (2, 15)).await;
    for round in 1..=3 {
        roll(&stage, &watcher, &format!("web:{round}")).await;
        // The loop has said that everything is as it should be: from here on every pod counts.
        vigil.lock().unwrap().rest(Timestamp::now());
    }
    let (deaths, faults) = lives.end().await;
    watcher.approve();
    let seen = watcher.seen();
    assert!(
        deaths >= 2 && faults >= 10 && seen >= 100,
        "{deaths} deaths, {faults} faults, {seen} seen"
    );
}
