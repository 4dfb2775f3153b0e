//! A simulated fleet on the embedded server, in this process and in real time.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use std::time::Duration;

use convoy_apiserver::home::{Home, Settings as HomeSettings};
use convoy_apiserver::transport::Transport;
use convoy_sim::fleet::{Fleet, Settings};
use convoy_sim::scenario::Scenario;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A home with a fleet that schedules and tends nodes.
struct World {
    client: Client,
    fleet: Fleet,
    end: oneshot::Sender<()>,
    home: tokio::task::JoinHandle<()>,
    _directory: tempfile::TempDir,
}

impl World {
    async fn start(scenario: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = HomeSettings::in_memory(directory.path().join("kubeconfig"));
        let home = Home::start(settings).await.unwrap();
        let client = Client::new(Transport::trusted(&home.server, ""), "default");
        let (end, ended) = oneshot::channel::<()>();
        let home =
            tokio::spawn(async move { home.run(async { drop(ended.await) }).await.unwrap() });
        let settings = Settings {
            runs_scheduler: true,
            runs_node_lifecycle: true,
            removes_nodes: true,
            ..Settings::new(Scenario::from_yaml(scenario).unwrap())
        };
        let mut fleet = Fleet::start(client.clone(), settings);
        assert!(fleet.ready().await);
        Self { client, fleet, end, home, _directory: directory }
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        self.client.request(request.body(body.to_string().into_bytes()).unwrap()).await
    }

    async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null).await.unwrap()
    }

    async fn pod(&self, name: &str, image: &str) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": image}]}});
        self.ask("POST", PODS, &pod).await.unwrap();
    }

    /// Waits until a pod is as wanted, and gives it.
    async fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = format!("{PODS}/{name}");
        for _ in 0..200 {
            let pod = self.get(&path).await;
            if wanted(&pod) {
                return pod;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not so after ten seconds: {:#}", self.get(&path).await);
    }

    async fn end(self) {
        self.fleet.end().await;
        self.end.send(()).unwrap();
        self.home.await.unwrap();
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUICK: &str = "latencies: {pull: 10ms, start: 10ms, ready: 10ms, stop: 1200ms}";

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut ready = conditions.into_iter().flatten().filter(|c| c["type"] == "Ready");
    ready.any(|condition| condition["status"] == "True")
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_bound_run_become_ready_and_end_gracefully() {
    let world = World::start(&format!("{QUICK}\nnodes: [{{count: 10}}]")).await;
    let nodes = world.get("/api/v1/nodes").await;
    let nodes = nodes["items"].as_array().unwrap();
    assert_eq!(nodes.len(), 10);
    assert!(nodes.iter().all(is_ready), "{nodes:#?}");

    world.pod("web", "nginx:1").await;
    let pod = world.until("web", is_ready).await;
    assert_eq!(pod["status"]["phase"], "Running");
    assert!(pod["spec"]["nodeName"].as_str().unwrap().starts_with("node-"));
    assert!(pod["status"]["podIP"].as_str().unwrap().starts_with("10."));
    assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true);

    world.ask("DELETE", &format!("{PODS}/web"), &json!({})).await.unwrap();
    let ending = world.get(&format!("{PODS}/web")).await;
    assert!(ending["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(ending["status"]["phase"], "Running");
    for _ in 0..200 {
        if world.ask("GET", &format!("{PODS}/web"), &Value::Null).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let gone = world.ask("GET", &format!("{PODS}/web"), &Value::Null).await.unwrap_err();
    assert!(matches!(gone, kube::Error::Api(status) if status.code == 404));

    let client = world.client.clone();
    world.end().await;
    let request = http::Request::get("/api/v1/nodes").body(Vec::new()).unwrap();
    let nodes: Value = client.request(request).await.unwrap();
    assert_eq!(nodes["items"], json!([]), "the fleet took its nodes along");
}

#[tokio::test(flavor = "multi_thread")]
async fn images_misbehave_as_the_scenario_says() {
    let rules = "rules:\n- {when: {image: '*:bad'}, then: {fails: crash, after: 50ms}}\n- {when: {image: '*:gone'}, then: {fails: image-pull-error}}\n";
    let world = World::start(&format!("{QUICK}\nnodes: [{{count: 2}}]\n{rules}")).await;
    world.pod("crashing", "app:bad").await;
    world.pod("pulling", "app:gone").await;
    let waits = |reason: &'static str| {
        move |pod: &Value| {
            pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
        }
    };
    let crashing = world.until("crashing", waits("CrashLoopBackOff")).await;
    assert_eq!(crashing["status"]["containerStatuses"][0]["restartCount"], 1);
    world.until("pulling", waits("ErrImagePull")).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_fits_nowhere_says_why_and_goes_where_room_is_made() {
    let scenario = "nodes: [{count: 3, taints: [{key: gpu, value: 'yes', effect: NoSchedule}]}]";
    let world = World::start(&format!("{QUICK}\n{scenario}")).await;
    world.pod("web", "nginx:1").await;
    let is_told = |pod: &Value| pod["status"]["conditions"][0]["reason"] == "Unschedulable";
    let pod = world.until("web", is_told).await;
    let message = pod["status"]["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(message, "0/3 nodes are available: 3 node(s) had untolerated taint {gpu: yes}.");
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "late", "annotations": {"sim.convoy.dev/node": "true"}},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "5"}}});
    world.ask("POST", "/api/v1/nodes", &node).await.unwrap();
    let pod = world.until("web", is_ready).await;
    assert_eq!(pod["spec"]["nodeName"], "late");
    world.end().await;
}
