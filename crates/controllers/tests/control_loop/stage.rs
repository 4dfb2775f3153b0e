//! A server with logical clusters, and the loop beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use convoy_apiserver::home::{Home, Settings as HomeSettings};
use convoy_apiserver::server::Server;
use convoy_apiserver::transport::Transport;
use convoy_controllers::{Cluster, Clusters, Members, Settings};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::copies::Copies;
use crate::transport::{Fate, meddled};

const PATIENCE: Duration = Duration::from_secs(30);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) struct Stage {
    server: Arc<Server>,
    end: oneshot::Sender<()>,
    home: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

/// A loop that runs, and its members.
pub(crate) struct Loop {
    pub(crate) members: watch::Sender<Members>,
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Loop {
    pub(crate) async fn end(self) {
        self.end.send(()).unwrap();
        self.task.await.unwrap();
    }

    /// Members join, or their connections are replaced.
    pub(crate) fn join(&self, names: &[&str], connect: impl Fn(&str) -> Cluster) {
        self.members.send_modify(|members| {
            for name in names {
                members.insert((*name).into(), Arc::new(connect(name)));
            }
        });
    }
}

impl Stage {
    /// A home with these logical clusters.
    pub(crate) async fn new(clusters: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = HomeSettings::in_memory(directory.path().join("kubeconfig"));
        let home = Home::start(settings).await.unwrap();
        let server = Arc::clone(&home.server);
        let (end, ended) = oneshot::channel::<()>();
        let home =
            tokio::spawn(async move { home.run(async { drop(ended.await) }).await.unwrap() });
        let stage = Self { server, end, home, _directory: directory };
        for name in clusters {
            let path = "/apis/convoy.dev/v1/logicalclusters";
            let cluster = json!({"apiVersion": "convoy.dev/v1", "kind": "LogicalCluster",
                "metadata": {"name": name}});
            stage.ask("", "POST", path, &cluster).await.unwrap();
            stage.until("", &format!("{path}/{name}"), |it| it["status"]["phase"] == "Ready").await;
        }
        stage
    }

    pub(crate) async fn end(self) {
        self.end.send(()).unwrap();
        self.home.await.unwrap();
    }

    pub(crate) fn start(&self) -> Loop {
        let (members, changes) = watch::channel(Members::new());
        let (end, ended) = oneshot::channel::<()>();
        let clusters = Clusters { home: self.connect(""), members: changes };
        let settings = Settings { concurrency: 4, ..Settings::new(vec![&Copies]) };
        let task = tokio::spawn(convoy_controllers::run(clusters, settings, async {
            drop(ended.await);
        }));
        Loop { members, end, task }
    }

    pub(crate) fn connect(&self, cluster: &str) -> Cluster {
        let transport = Transport::trusted(&self.server, cluster);
        let client = Client::new(transport, "default");
        Cluster { request_limit: Duration::from_millis(500), ..Cluster::new(client) }
    }

    /// A connection that answers nothing while it is silent.
    pub(crate) fn connect_by(&self, cluster: &str, is_silent: &Arc<AtomicBool>) -> Cluster {
        let transport = Transport::trusted(&self.server, cluster);
        let is_silent = Arc::clone(is_silent);
        let client = meddled(transport, move |_, _| {
            if is_silent.load(Ordering::Relaxed) { Fate::Silence } else { Fate::Sound }
        });
        Cluster { client, ..self.connect(cluster) }
    }

    pub(crate) async fn ask(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let content =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", content);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.connect(cluster).client.request(request.body(body).unwrap()).await
    }

    /// Creates an original in the home cluster.
    pub(crate) async fn original(&self, name: &str, data: Value) {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": data});
        self.ask("", "POST", MAPS, &map).await.unwrap();
    }

    pub(crate) async fn patch(&self, cluster: &str, name: &str, patch: Value) {
        self.ask(cluster, "PATCH", &format!("{MAPS}/{name}"), &patch).await.unwrap();
    }

    /// Waits until an object is as wanted.
    pub(crate) async fn until(
        &self,
        cluster: &str,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let started = Instant::now();
        loop {
            let found = self.ask(cluster, "GET", path, &Value::Null).await.unwrap_or_default();
            if wanted(&found) {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "{cluster}: {path}: {found:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a cluster has a copy with this text.
    pub(crate) async fn until_copied(&self, cluster: &str, name: &str, text: &str) {
        self.until(cluster, &format!("{MAPS}/{name}"), |map| map["data"]["text"] == text).await;
    }

    /// Waits for a note on an original.
    pub(crate) async fn until_noted(&self, name: &str, note: &str, value: &str) {
        let path = format!("{MAPS}/{name}");
        self.until("", &path, |map| map["metadata"]["annotations"][note] == value).await;
    }

    pub(crate) async fn has(&self, cluster: &str, name: &str) -> bool {
        self.ask(cluster, "GET", &format!("{MAPS}/{name}"), &Value::Null).await.is_ok()
    }

    /// Waits until an event about an original says something.
    pub(crate) async fn until_told(&self, name: &str, message: &str) {
        let is_told = |events: &Value| {
            let events = events["items"].as_array().into_iter().flatten();
            let mut about = events.filter(|event| event["involvedObject"]["name"] == name);
            about.any(|event| event["message"].as_str().unwrap_or_default().contains(message))
        };
        self.until("", "/api/v1/namespaces/default/events", is_told).await;
    }
}
