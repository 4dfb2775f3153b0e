//! Writes that meet conflicts and failures, defects, and watches that are lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::json;

use crate::cluster::{Cluster, both, is_ready, start};
use crate::transport::{Fate, is_watch, is_write, meddled};

/// Four replicas, of which one may be missing and one too many.
fn keeps_its_promise(pods: &[k8s_openapi::api::core::v1::Pod]) {
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    assert!(ready >= 3, "{ready} of 4 with one that may be missing");
    assert!(pods.len() <= 5, "{} of 4 with one in surplus", pods.len());
}

#[tokio::test]
async fn a_rollout_ends_though_every_other_write_fails() {
    let cluster = Cluster::new().await;
    let writes = AtomicUsize::new(0);
    let client = meddled(cluster.transport(), move |method, uri| {
        if !is_write(method, uri) {
            return Fate::Sound;
        }
        match writes.fetch_add(1, Ordering::Relaxed) % 8 {
            1 => Fate::refused(409),
            3 => Fate::refused(429),
            5 => Fate::refused(500),
            7 => Fate::Failed,
            _ => Fate::Sound,
        }
    });
    let settings = both();
    let metrics = Arc::clone(&settings.metrics);
    let running = start(&client, settings);
    cluster.create(4).await;
    cluster.roll(|_, _| {}).await;
    cluster.set_image("web:v2").await;
    cluster.roll(|_, pods| keeps_its_promise(pods)).await;
    cluster.rest().await;
    assert_eq!(cluster.live_pods().await.len(), 4);
    running.end().await;
    let text = metrics.text();
    for code in [409, 429, 500] {
        assert!(text.contains(&format!("code=\"{code}\"")), "{text}");
    }
    assert!(!text.contains("convoy_conflicts_total 0"), "{text}");
}

#[tokio::test]
async fn someone_else_writing_the_same_objects_is_planned_around() {
    let cluster = Cluster::new().await;
    let running = start(&cluster.client, both());
    cluster.create(3).await;
    let meddling = async {
        for number in 0..200 {
            let annotations = json!({"touched": number.to_string()});
            cluster.patch(json!({"metadata": {"annotations": annotations}})).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(meddling, cluster.roll(|_, _| {}));
    cluster.roll(|_, _| {}).await;
    assert_eq!(cluster.live_pods().await.len(), 3);
    running.end().await;
}

#[tokio::test]
async fn a_defect_in_a_write_does_not_hold_its_rollout_for_ever() {
    let cluster = Cluster::new().await;
    let defects = AtomicUsize::new(0);
    let client = meddled(cluster.transport(), move |method, uri| {
        let strikes = is_write(method, uri) && defects.fetch_add(1, Ordering::Relaxed) < 2;
        if strikes { Fate::Panic } else { Fate::Sound }
    });
    let running = start(&client, both());
    cluster.create(2).await;
    cluster.roll(|_, _| {}).await;
    assert_eq!(cluster.live_pods().await.len(), 2);
    running.end().await;
}

#[tokio::test]
async fn what_was_done_before_a_conflict_is_told() {
    let cluster = Cluster::new().await;
    // The status follows on the pods in one step: they are made, and then it fails, once.
    let statuses = AtomicUsize::new(0);
    let client = meddled(cluster.transport(), move |method, uri| {
        let is_status = is_write(method, uri) && uri.path().ends_with("/status");
        let strikes = is_status && statuses.fetch_add(1, Ordering::Relaxed) < 4;
        if strikes { Fate::refused(409) } else { Fate::Sound }
    });
    let running = start(&client, both());
    cluster.create(3).await;
    cluster.roll(|_, _| {}).await;
    running.end().await;
    let events: Api<Event> = Api::default_namespaced(cluster.client.clone());
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let told = |reason: &str| {
        events.iter().filter(|event| event.reason.as_deref() == Some(reason)).count()
    };
    assert_eq!((told("ScalingReplicaSet"), told("SuccessfulCreate")), (1, 3), "{events:?}");
}

#[tokio::test]
async fn watches_whose_place_is_gone_are_listed_anew() {
    let cluster = Cluster::new().await;
    // Of each kind, the first watch is refused, and the second told in the stream.
    let watches: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let lists = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&lists);
    let client = meddled(cluster.transport(), move |method, uri| {
        if !is_watch(uri) {
            let is_list = method == http::Method::GET && uri.path().ends_with("/pods");
            seen.fetch_add(usize::from(is_list), Ordering::Relaxed);
            return Fate::Sound;
        }
        let mut watches = watches.lock().unwrap();
        let number = watches.entry(uri.path().to_owned()).or_default();
        *number += 1;
        let expired = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": 410,
            "status": "Failure", "reason": "Expired", "message": "too old resource version"});
        match number {
            1 => Fate::Answer(410, expired),
            2 => Fate::Answer(200, json!({"type": "ERROR", "object": expired})),
            _ => Fate::Sound,
        }
    });
    let running = start(&client, both());
    cluster.create(3).await;
    cluster.roll(|_, _| {}).await;
    assert_eq!(cluster.live_pods().await.len(), 3);
    assert!(lists.load(Ordering::Relaxed) >= 3, "listed, and anew after each loss");
    running.end().await;
}

/// A server that forgets every version at once is asked for a list ever less often.
#[tokio::test]
async fn a_storm_of_expired_watches_is_no_storm_of_lists() {
    const STORM: Duration = Duration::from_secs(3);
    let cluster = Cluster::new().await;
    let (begun, lists) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&lists);
    let client = meddled(cluster.transport(), move |method, uri| {
        if begun.elapsed() > STORM {
            return Fate::Sound;
        }
        if is_watch(uri) {
            let expired = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": 410,
                "status": "Failure", "reason": "Expired", "message": "too old resource version"});
            return Fate::Answer(410, expired);
        }
        let is_list = method == http::Method::GET && uri.path().ends_with("/pods");
        seen.fetch_add(usize::from(is_list), Ordering::Relaxed);
        Fate::Sound
    });
    let running = start(&client, both());
    cluster.create(3).await;
    tokio::time::sleep(STORM.saturating_sub(begun.elapsed())).await;
    // 0, 100, 200, 400, 800 and 1600 ms after each other.
    let lists = lists.load(Ordering::Relaxed);
    assert!((2..=7).contains(&lists), "{lists} lists");
    cluster.roll(|_, _| {}).await;
    assert_eq!(cluster.live_pods().await.len(), 3);
    running.end().await;
}

/// The watch of Deployments tells nothing, that of ReplicaSets works: what the garbage collector
/// orphans is seen, and that its owner goes is not.
#[tokio::test]
async fn an_owner_that_is_being_deleted_adopts_nothing_though_its_watch_is_late() {
    let cluster = Cluster::new().await;
    cluster.create(2).await;
    let client = meddled(cluster.transport(), |_, uri| {
        let is_late = is_watch(uri) && uri.path().ends_with("/deployments");
        if is_late { Fate::Silence } else { Fate::Sound }
    });
    let running = start(&client, both());
    cluster.roll(|_, _| {}).await;
    cluster.rest().await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..Default::default() };
    cluster.deployments().delete("web", &orphan).await.unwrap();
    let web = cluster.deployments().get("web").await.unwrap();
    assert!(web.metadata.deletion_timestamp.is_some(), "it waits for the garbage collector");
    let sets: Api<ReplicaSet> = cluster.sets();
    let set = sets.list(&ListParams::default()).await.unwrap().items.remove(0).name_any();
    let orphaned = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
    sets.patch(&set, &PatchParams::default(), &orphaned).await.unwrap();
    cluster.rest().await;
    let set = sets.get(&set).await.unwrap();
    assert_eq!(set.metadata.owner_references, None);
    running.end().await;
}

#[tokio::test]
async fn more_objects_than_fit_on_a_page_are_all_seen() {
    const SETS: usize = 501;
    let cluster = Cluster::new().await;
    let sets: Api<ReplicaSet> = cluster.sets();
    for number in 0..SETS {
        let name = format!("set-{number}");
        let labels = json!({"set": name});
        let set = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {
            "replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web:v1"}]}}}}));
        sets.create(&PostParams::default(), &set.unwrap()).await.unwrap();
    }
    let running = start(&cluster.client, both());
    cluster.rest().await;
    let list = sets.list(&ListParams::default()).await.unwrap().items;
    let observed = |set: &&ReplicaSet| {
        set.status.as_ref().is_some_and(|status| status.observed_generation == Some(1))
    };
    assert_eq!(list.iter().filter(observed).count(), SETS);
    running.end().await;
}
