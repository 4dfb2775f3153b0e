//! When the loop writes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use convoy_controllers::Settings;
use convoy_controllers::log::DecisionLog;
use convoy_controllers::serve::{Endpoint, LogLevel, Process};
use kube::api::ListParams;
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

#[derive(Debug)]
struct Quiet;

impl LogLevel for Quiet {
    fn get(&self) -> String {
        "error".to_owned()
    }

    fn set(&self, word: &str) -> Result<(), String> {
        Err(format!("{word:?} is no log level"))
    }
}

#[tokio::test]
async fn metrics_and_health_are_served() {
    let cluster = Cluster::new().await;
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = endpoint.address().unwrap();
    let settings = both();
    let serving = tokio::spawn(endpoint.run(Process {
        metrics: Arc::clone(&settings.metrics),
        log_level: &Quiet,
        profiles: None,
    }));
    let get = async |path: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: convoy\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    assert!(get("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(get("/debug/log-level").await.ends_with("error\n"));
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
