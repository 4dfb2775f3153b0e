//! The promise of a rollout, watched from outside: `convoy up` with simulated nodes, `convoy run`
//! that is killed and started again at random, a connection between them that refuses writes,
//! loses answers and breaks off watches, and a client of its own that counts pods after every
//! write.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

mod proxy;
mod watcher;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use convoy_sim::seed::Seed;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use crate::proxy::Proxy;
use crate::watcher::Watcher;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REPLICAS: u64 = 6;
/// How long one rollout may take on a machine that does other things too.
const PATIENCE: Duration = Duration::from_mins(2);

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn convoy() -> Command {
    Command::new(env!("CARGO_BIN_EXE_convoy"))
}

/// `convoy up` with nodes, and the kubeconfig to it.
fn up(directory: &Path) -> (Process, PathBuf) {
    let mut command = convoy();
    command.args([
        "up",
        "--listen",
        "127.0.0.1:0",
        "--output",
        "json",
        "--nodes",
        "3",
        "--controllers",
        "none",
    ]);
    let mut child =
        command.arg("--data-dir").arg(directory).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    (Process(child), ready["kubeconfig"].as_str().unwrap().into())
}

/// Starts the loop, kills it after a while, and so on until `end`.
async fn live_and_die(kubeconfig: PathBuf, end: Arc<AtomicBool>) -> u32 {
    let seed = Seed::new(1).child("lives", "");
    let mut deaths = 0;
    while !end.load(Ordering::Relaxed) {
        let mut command = convoy();
        command.args(["run", "--dialects", "apps,replicasets", "--kubeconfig"]);
        command.arg(&kubeconfig).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(command.spawn().unwrap());
        let millis = seed.nth(deaths).between(400, 3_000);
        tokio::time::sleep(Duration::from_millis(millis.unsigned_abs())).await;
        drop(process);
        deaths += 1;
    }
    deaths
}

async fn send(client: &Client, method: Method, path: &str, body: Value) -> Value {
    let kind = if method == Method::PATCH {
        "application/strategic-merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "web", "image": "web:0"}]}}}})
}

/// Waits until a rollout is complete; nothing that the watcher sees may break the promise.
async fn roll(client: &Client, watcher: &Watcher, image: &str) {
    let containers = json!([{"name": "web", "image": image}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    send(client, Method::PATCH, &format!("{DEPLOYMENTS}/web"), patch).await;
    let started = Instant::now();
    loop {
        watcher.approve();
        let deployment =
            send(client, Method::GET, &format!("{DEPLOYMENTS}/web"), Value::Null).await;
        let status = &deployment["status"];
        let counts = ["replicas", "updatedReplicas", "availableReplicas"];
        if status["observedGeneration"] == deployment["metadata"]["generation"]
            && counts.iter().all(|count| status[*count] == json!(REPLICAS))
        {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{image} is not rolled out: {status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_holds_while_the_loop_dies_and_its_connection_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (_up, kubeconfig) = up(directory.path());
    let client = connect(&kubeconfig).await;
    let made = send(&client, Method::POST, DEPLOYMENTS, deployment()).await;
    let watcher = Watcher::start(client.clone(), &made).await;
    let proxy = Proxy::start(client.clone(), Seed::new(1)).await;
    let through = directory.path().join("through.kubeconfig");
    std::fs::write(&through, proxy.kubeconfig().to_string()).unwrap();
    let end = Arc::new(AtomicBool::new(false));
    let lives = tokio::spawn(live_and_die(through, Arc::clone(&end)));
    for round in 1..=3 {
        roll(&client, &watcher, &format!("web:{round}")).await;
        watcher.rest();
    }
    end.store(true, Ordering::Relaxed);
    let deaths = lives.await.unwrap();
    watcher.approve();
    let (seen, faults) = (watcher.seen(), proxy.faults());
    assert!(
        deaths >= 2 && faults >= 10 && seen >= 100,
        "{deaths} deaths, {faults} faults, {seen} seen"
    );
}

async fn connect(kubeconfig: &Path) -> Client {
    let read = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await.unwrap();
    Client::try_from(config).unwrap()
}
