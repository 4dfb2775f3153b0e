//! A server, the loop beside it, and the hands of a user and a kubelet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use convoy_apiserver::object_meta::Store;
use convoy_apiserver::server::{Limits, Server};
use convoy_apiserver::surroundings::System;
use convoy_apiserver::transport::Transport;
use convoy_controllers::Settings;
use convoy_plan::Dialect;
use convoy_plan::dialect::apps::{Deployments, ReplicaSets};
use convoy_store::MemoryBackend;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Cluster {
    pub(crate) server: Arc<Server>,
    pub(crate) client: Client,
}

/// A loop that runs.
pub(crate) struct Running {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn end(self) {
        self.end.send(()).unwrap();
        self.task.await.unwrap();
    }
}

pub(crate) fn both() -> Settings {
    let dialects: Vec<&'static dyn Dialect> = vec![&Deployments, &ReplicaSets];
    Settings::new(dialects)
}

pub(crate) fn start(client: &Client, settings: Settings) -> Running {
    let (end, ended) = oneshot::channel::<()>();
    let client = client.clone();
    let task = tokio::spawn(convoy_controllers::run(client, settings, async {
        drop(ended.await);
    }));
    Running { end, task }
}

impl Cluster {
    /// The way to its server that meets nobody in between.
    pub(crate) fn transport(&self) -> Transport {
        Transport::trusted(&self.server, "")
    }

    pub(crate) async fn new() -> Self {
        let store = Store::open(MemoryBackend, convoy_store::Settings::default()).unwrap();
        let server = Arc::new(Server::new(store, Arc::<System>::default(), Limits::default()));
        let client = Client::new(Transport::trusted(&server, ""), "default");
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        Self { server, client }
    }

    pub(crate) fn deployments(&self) -> Api<Deployment> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) fn sets(&self) -> Api<ReplicaSet> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn create(&self, replicas: i32) {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:v1"}]}}},
        }))
        .unwrap();
        self.deployments().create(&PostParams::default(), &deployment).await.unwrap();
    }

    pub(crate) async fn patch(&self, patch: Value) {
        let params = PatchParams::default();
        self.deployments().patch("web", &params, &Patch::Strategic(patch)).await.unwrap();
    }

    pub(crate) async fn set_image(&self, image: &str) {
        let containers = json!([{"name": "web", "image": image}]);
        self.patch(json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
    }

    pub(crate) async fn live_pods(&self) -> Vec<Pod> {
        let pods = self.pods().list(&ListParams::default()).await.unwrap().items;
        pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect()
    }

    /// Every pod that is not ready becomes so.
    pub(crate) async fn make_ready(&self) {
        for pod in self.live_pods().await.into_iter().filter(|pod| !is_ready(pod)) {
            let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let status = json!({"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": now}]}});
            let (params, patch) = (PatchParams::default(), Patch::Merge(status));
            match self.pods().patch_status(&pod.name_any(), &params, &patch).await {
                Ok(_) => {}
                // Deleted in between.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) async fn is_complete(&self) -> bool {
        let deployment = self.deployments().get("web").await.unwrap();
        let Some(status) = deployment.status else { return false };
        let wanted = deployment.spec.replicas;
        status.observed_generation == deployment.metadata.generation
            && [status.replicas, status.updated_replicas, status.available_replicas]
                .iter()
                .all(|count| *count == wanted)
    }

    /// Plays the kubelet until the rollout is complete; `look` sees at every turn how many
    /// replicas the sets ask for, and the pods.
    pub(crate) async fn roll(&self, mut look: impl FnMut(i32, &[Pod])) {
        let started = Instant::now();
        while !self.is_complete().await {
            look(self.asked_for().await, &self.live_pods().await);
            self.make_ready().await;
            assert!(started.elapsed() < PATIENCE, "not complete: {}", self.shown().await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn asked_for(&self) -> i32 {
        let sets = self.sets().list(&ListParams::default()).await.unwrap().items;
        sets.iter().filter_map(|set| set.spec.replicas).sum()
    }

    /// Waits until the world has stood still for a while; gives back its version.
    pub(crate) async fn rest(&self) -> String {
        let started = Instant::now();
        let (mut version, mut since) = (self.version().await, Instant::now());
        while since.elapsed() < Duration::from_millis(400) {
            assert!(started.elapsed() < PATIENCE, "never at rest: {}", self.shown().await);
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = self.version().await;
            if now != version {
                (version, since) = (now, Instant::now());
            }
        }
        version
    }

    /// The version of everything: any write changes it.
    pub(crate) async fn version(&self) -> String {
        let list = self.pods().list(&ListParams::default()).await.unwrap();
        list.metadata.resource_version.unwrap()
    }

    async fn shown(&self) -> String {
        let deployment = self.deployments().get("web").await.unwrap();
        let sets = self.sets().list(&ListParams::default()).await.unwrap().items;
        let sets: Vec<_> = sets
            .iter()
            .map(|set| json!({"wants": set.spec.replicas, "status": set.status}))
            .collect();
        json!({"deployment": deployment.status, "sets": sets, "pods": self.live_pods().await.len()})
            .to_string()
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
