//! When the loop writes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use convoy_controllers::log::DecisionLog;
use convoy_controllers::serve::Endpoint;
use convoy_controllers::{Settings, lease::Election};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let spec = leases.get("convoy").await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("two"), Some(1)));
}

#[tokio::test]
async fn a_leader_that_loses_its_lease_stops_in_the_middle_of_its_work() {
    let cluster = Cluster::new().await;
    let client = cluster.client.clone();
    let election = Election {
        retry: Duration::from_millis(20),
        renew_within: Duration::from_millis(200),
        ..Election::new("default", "convoy", "one")
    };
    election.acquire(&client).await;
    let work = {
        let (client, election) = (client.clone(), election.clone());
        tokio::spawn(async move {
            let held = election.hold(&client);
            convoy_controllers::run(client.clone(), both(), held).await;
        })
    };
    cluster.create(4).await;
    cluster.roll(|_, _| {}).await;
    cluster.set_image("web:v2").await;
    let leases: Api<Lease> = Api::default_namespaced(client);
    let taken = json!({"spec": {"holderIdentity": "two"}});
    leases.patch("convoy", &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), work).await.unwrap().unwrap();
    let version = cluster.version().await;
    cluster.patch(json!({"spec": {"replicas": 9}})).await;
    let after_ours = cluster.rest().await;
    assert_ne!(version, after_ours, "our own patch");
    assert!(cluster.live_pods().await.len() < 9, "nobody works any more");
    let spec = leases.get("convoy").await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("two"), "and nobody takes it back");
}

#[tokio::test]
async fn metrics_and_health_are_served() {
    let cluster = Cluster::new().await;
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = endpoint.address().unwrap();
    let settings = both();
    let serving = tokio::spawn(endpoint.run(Arc::clone(&settings.metrics)));
    let get = async |path: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: convoy\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    assert!(get("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(get("/readyz").await.starts_with("HTTP/1.1 503"), "nothing is listed yet");
    assert!(get("/elsewhere").await.starts_with("HTTP/1.1 404"));
    let metrics = Arc::clone(&settings.metrics);
    let running = start(&cluster.client, settings);
    cluster.create(2).await;
    cluster.roll(|_, _| {}).await;
    assert!(metrics.is_ready() && get("/readyz").await.starts_with("HTTP/1.1 200"));
    let text = get("/metrics").await;
    assert!(text.contains("application/openmetrics-text"), "{text}");
    assert!(text.contains(r#"convoy_writes_total{verb="create",code="201"} 3"#), "{text}");
    assert!(text.contains("convoy_plan_seconds_count"), "{text}");
    running.end().await;
    serving.abort();
}
