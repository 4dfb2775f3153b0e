//! Where a promise is tried: `convoy up` with simulated nodes, and `convoy run` that is killed and
//! started again at random.

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
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::proxy::Proxy;

/// How long nothing may change on a machine that does other things too.
const PATIENCE: Duration = Duration::from_mins(2);

/// A process that ends with the test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A server, and the client of someone who is always understood.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) kubeconfig: PathBuf,
    directory: TempDir,
    _up: Process,
}

/// A loop that dies again and again, and whose connection fails.
pub(crate) struct Lives {
    end: Arc<AtomicBool>,
    task: JoinHandle<u32>,
    proxy: Proxy,
}

pub(crate) fn convoy() -> Command {
    Command::new(env!("CARGO_BIN_EXE_convoy"))
}

impl Stage {
    /// `convoy up` with the nodes of a scenario.
    pub(crate) async fn set(scenario: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("scenario.yaml");
        std::fs::write(&file, scenario).unwrap();
        let mut command = convoy();
        command.args(["up", "--listen", "127.0.0.1:0", "--output", "json"]);
        command.args(["--controllers", "none", "--scenario"]);
        command.arg(file).arg("--data-dir").arg(directory.path());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let kubeconfig = PathBuf::from(ready["kubeconfig"].as_str().unwrap());
        let client = connect(&kubeconfig).await;
        Self { client, kubeconfig, directory, _up: Process(child) }
    }

    /// Lets a loop live, and die after so many writes, drawn anew for each life. A machine that
    /// is slow gives it longer lives.
    pub(crate) async fn play(&self, dialects: &'static str, writes: (i64, i64)) -> Lives {
        let proxy = Proxy::start(self.client.clone(), Seed::new(1)).await;
        let through = self.directory.path().join("through.kubeconfig");
        std::fs::write(&through, proxy.kubeconfig().to_string()).unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let mut command = convoy();
        command.args(["run", "--dialects", dialects, "--kubeconfig"]);
        command.arg(&through).stdout(Stdio::null()).stderr(Stdio::null());
        let task = tokio::spawn(live_and_die(command, writes, proxy.clone(), Arc::clone(&end)));
        Lives { end, task, proxy }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Value) -> Value {
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        self.client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
    }

    /// The object at a path, or null.
    pub(crate) async fn find(&self, path: &str) -> Value {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.client.request(request).await.unwrap_or_default()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, json!(null)).await
    }
}

impl Lives {
    /// Ends it; how often the loop died, and how often its connection failed it.
    pub(crate) async fn end(self) -> (u32, u32) {
        self.end.store(true, Ordering::Relaxed);
        (self.task.await.unwrap(), self.proxy.faults())
    }
}

/// Starts the loop, kills it after some writes, and so on until `end`.
async fn live_and_die(
    mut command: Command,
    (least, most): (i64, i64),
    proxy: Proxy,
    end: Arc<AtomicBool>,
) -> u32 {
    let seed = Seed::new(1).child("lives", "");
    let mut deaths = 0;
    while !end.load(Ordering::Relaxed) {
        let mut process = Process(command.spawn().unwrap());
        let first = proxy.writes();
        let last = first + u32::try_from(seed.nth(deaths).between(least, most)).unwrap();
        let (mut written, mut since) = (first, Instant::now());
        // One that has begun and backs off from a server that fails so often is no trial.
        while written < last
            && (written == first || since.elapsed() < Duration::from_secs(2))
            && !end.load(Ordering::Relaxed)
            && process.0.try_wait().unwrap().is_none()
        {
            tokio::time::sleep(Duration::from_millis(2)).await;
            if proxy.writes() != written {
                (written, since) = (proxy.writes(), Instant::now());
            }
        }
        drop(process);
        deaths += 1;
    }
    deaths
}

/// Looks again until there is something, or until what there is instead stays as it is.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> Result<T, Value>) -> T {
    let (mut since, mut last) = (Instant::now(), Value::Null);
    loop {
        match look().await {
            Ok(found) => return found,
            Err(instead) if instead != last => (since, last) = (Instant::now(), instead),
            Err(_) => assert!(since.elapsed() < PATIENCE, "it is not {what}: {last:#}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn connect(kubeconfig: &Path) -> Client {
    let read = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await.unwrap();
    Client::try_from(config).unwrap()
}
