//! When the loop writes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use convoy_controllers::log::DecisionLog;
use convoy_controllers::{Settings, lease::Election};
use kube::api::{Api, ListParams};

use crate::cluster::{Cluster, both, start};

#[tokio::test]
async fn a_second_loop_on_a_quiet_world_writes_nothing() {
    let cluster = Cluster::new().await;
    let first = start(&cluster.client, both());
    cluster.create(3).await;
    cluster.roll(|_, _| {}).await;
    cluster.rest().await;
    first.end().await;
    let version = cluster.version().await;
    let settings = both();
    let metrics = Arc::clone(&settings.metrics);
    let second = start(&cluster.client, settings);
    let started = Instant::now();
    while !metrics.text().contains(r#"convoy_passes_total{dialect="apps",verdict="Done"} 1"#) {
        assert!(started.elapsed() < Duration::from_secs(30), "{}", metrics.text());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(cluster.rest().await, version);
    assert!(metrics.is_ready());
    assert!(!metrics.text().contains("convoy_writes_total{"), "{}", metrics.text());
    second.end().await;
    assert_eq!(cluster.version().await, version);
}

#[tokio::test]
async fn an_observer_decides_and_writes_nothing() {
    let cluster = Cluster::new().await;
    cluster.create(3).await;
    let version = cluster.version().await;
    let path = std::env::temp_dir().join(format!("convoy-observe-{}.jsonl", std::process::id()));
    let log = DecisionLog::open(&path).unwrap();
    let settings = Settings { observe: true, decision_log: Some(log), ..both() };
    let running = start(&cluster.client, settings);
    let started = Instant::now();
    let text = loop {
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("Create") {
            break text;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{text}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(cluster.rest().await, version);
    running.end().await;
    std::fs::remove_file(&path).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(line["rollout"], "apps/Deployment/default/web");
    assert!(cluster.sets().list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_leader_hands_over_at_once() {
    let cluster = Cluster::new().await;
    let client = &cluster.client;
    let [one, two] = ["one", "two"].map(|name| {
        let retry = Duration::from_millis(50);
        Election { retry, ..Election::new("default", "convoy", name) }
    });
    one.acquire(client).await;
    let early = tokio::time::timeout(Duration::from_millis(300), two.acquire(client)).await;
    assert!(early.is_err(), "one leads");
    one.release(client).await;
    // Far less than the fifteen seconds a silent leader keeps its lease for.
    tokio::time::timeout(Duration::from_secs(5), two.acquire(client)).await.unwrap();
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> =
        Api::default_namespaced(client.clone());
    let spec = leases.get("convoy").await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("two"), Some(1)));
}
