//! Steps whose writes go to several clusters, of which some are silent, leave or come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn a_write_goes_to_the_cluster_that_its_key_names() {
    let stage = Stage::new(&["a", "b"]).await;
    let running = stage.start();
    running.join(&["a", "b"], |name| stage.connect(name));
    stage.original("one", json!({"to": "a,b", "text": "x"})).await;
    stage.until_noted("one", "copied", "2").await;
    stage.until_copied("a", "one", "x").await;
    stage.original("two", json!({"to": "b", "text": "z"})).await;
    stage.until_copied("b", "two", "z").await;
    assert!(!stage.has("a", "two").await);
    // The versions of clusters are not comparable: b's may be smaller than a's.
    stage.patch("", "one", json!({"data": {"text": "y"}})).await;
    stage.until_copied("a", "one", "y").await;
    stage.until_copied("b", "one", "y").await;
    stage.patch("b", "one", json!({"data": {"text": "by hand"}})).await;
    stage.until_copied("b", "one", "y").await;
    stage.until_noted("one", "copied", "2").await;
    running.end().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_cluster_holds_up_nobody_else() {
    let stage = Stage::new(&["a", "b"]).await;
    let running = stage.start();
    let is_silent = Arc::new(AtomicBool::new(true));
    running.join(&["b"], |name| stage.connect_by(name, &is_silent));
    running.join(&["a"], |name| stage.connect(name));
    // More than are executed at once.
    for number in 0..12 {
        stage.original(&format!("b{number}"), json!({"to": "b", "text": "x"})).await;
    }
    stage.original("first", json!({"to": "a", "text": "x"})).await;
    stage.until_copied("a", "first", "x").await;
    stage.until_told("b0", "in cluster \"b\" are not known yet: no response within 500 ms").await;
    is_silent.store(false, Ordering::Relaxed);
    for number in 0..12 {
        stage.until_copied("b", &format!("b{number}"), "x").await;
    }
    // Silent again, after its objects are known: writes are in flight and get no response.
    is_silent.store(true, Ordering::Relaxed);
    for number in 0..12 {
        stage.patch("", &format!("b{number}"), json!({"data": {"text": "y"}})).await;
    }
    stage.original("second", json!({"to": "a", "text": "x"})).await;
    stage.until_copied("a", "second", "x").await;
    is_silent.store(false, Ordering::Relaxed);
    for number in 0..12 {
        stage.until_copied("b", &format!("b{number}"), "y").await;
    }
    running.end().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_join_and_leave_while_the_loop_runs() {
    let stage = Stage::new(&["a", "b"]).await;
    let running = stage.start();
    stage.original("one", json!({"to": "a", "text": "x"})).await;
    stage.until_told("one", "there is no connection to it").await;
    running.join(&["a"], |name| stage.connect(name));
    stage.until_copied("a", "one", "x").await;
    stage.until_noted("one", "copied", "1").await;
    running.members.send_modify(std::collections::BTreeMap::clear);
    stage.patch("", "one", json!({"data": {"text": "y"}})).await;
    stage.original("two", json!({"to": "", "text": "x"})).await;
    stage.until_noted("two", "copied", "0").await;
    // The name of the cluster now stands for another one, whose versions are others.
    running.join(&["a"], |_| stage.connect("b"));
    stage.until_copied("b", "one", "y").await;
    stage.until_copied("a", "one", "x").await;
    running.end().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_are_watched_as_rollouts_need_them() {
    let stage = Stage::new(&[]).await;
    let running = stage.start();
    // Not served, and nobody else waits for it.
    stage.original("one", json!({"to": "", "reads": "x.dev/Thing"})).await;
    stage.until_noted("one", "beside", "0").await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "things.x.dev"},
        "spec": {"group": "x.dev", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object"}}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    stage.ask("", "POST", path, &definition).await.unwrap();
    let thing = json!({"apiVersion": "x.dev/v1", "kind": "Thing", "metadata": {"name": "a"}});
    let things = "/apis/x.dev/v1/namespaces/default/things";
    stage.until("", things, |list| list["kind"] == "ThingList").await;
    stage.ask("", "POST", things, &thing).await.unwrap();
    stage.until_noted("one", "beside", "1").await;
    stage.patch("", "one", json!({"data": {"reads": null}})).await;
    stage.until_noted("one", "beside", "0").await;
    running.end().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_namespaced_kind_can_be_needed() {
    let stage = Stage::new(&[]).await;
    let service = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}]}})
    };
    let services = "/api/v1/namespaces/default/services";
    let running = stage.start();
    stage.original("one", json!({"to": "", "all": "true"})).await;
    let path = "/api/v1/namespaces/default/configmaps/one";
    let noted =
        stage.until("", path, |map| !map["metadata"]["annotations"]["beside"].is_null()).await;
    let beside = |map: &serde_json::Value| -> u32 {
        map["metadata"]["annotations"]["beside"].as_str().unwrap().parse().unwrap()
    };
    let before = beside(&noted);
    stage.ask("", "POST", services, &service("web")).await.unwrap();
    stage.until("", path, |map| beside(map) > before).await;
    running.end().await;
    stage.end().await;
}
