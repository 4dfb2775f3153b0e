//! kube-rs against the server: in process through its transport, and over TLS by kubeconfig.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use convoy_apiserver::home::{Home, Settings};
use convoy_apiserver::object_meta::Store;
use convoy_apiserver::server::{Limits, Server};
use convoy_apiserver::surroundings::System;
use convoy_apiserver::transport::Transport;
use convoy_store::MemoryBackend;
use futures_util::{StreamExt, TryStreamExt};
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::ConfigExt;
use kube::runtime::controller::Action;
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;

/// A server in this process, with the namespace that objects go into.
async fn in_process() -> Client {
    let store = Store::open(MemoryBackend, convoy_store::Settings::default()).unwrap();
    let server = Arc::new(Server::new(store, Arc::<System>::default(), Limits::default()));
    let client = Client::new(Transport::trusted(&server, ""), "default");
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    client
}

fn map(name: &str, value: &str) -> ConfigMap {
    let data = BTreeMap::from([("key".to_owned(), value.to_owned())]);
    let mut map = ConfigMap { data: Some(data), ..ConfigMap::default() };
    map.meta_mut().name = Some(name.to_owned());
    map
}

#[tokio::test]
async fn objects_are_made_changed_and_deleted() {
    let client = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let made = maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let again = maps.create(&PostParams::default(), &map("a", "1")).await.unwrap_err();
    assert!(matches!(again, kube::Error::Api(status) if status.reason == "AlreadyExists"));

    let mut next = made.clone();
    next.data = map("a", "2").data;
    let changed = maps.replace("a", &PostParams::default(), &next).await.unwrap();
    assert_ne!(changed.resource_version(), made.resource_version());
    let stale = maps.replace("a", &PostParams::default(), &next).await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.reason == "Conflict"));

    // The same once more is no write.
    let same = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_eq!(same.resource_version(), changed.resource_version());

    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert!(maps.delete("a", &DeleteParams::default()).await.unwrap().is_right());
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn configurations_are_applied() {
    let client = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let config = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a"}, "data": {"key": value}})
    };
    let one = PatchParams::apply("one");
    let made = maps.patch("a", &one, &Patch::Apply(config("1"))).await.unwrap();
    let again = maps.patch("a", &one, &Patch::Apply(config("1"))).await.unwrap();
    assert_eq!(made.resource_version(), again.resource_version());
    let two = PatchParams::apply("two");
    let conflict = maps.patch("a", &two, &Patch::Apply(config("2"))).await.unwrap_err();
    assert!(matches!(conflict, kube::Error::Api(status) if status.code == 409));
    let forced = maps.patch("a", &two.force(), &Patch::Apply(config("2"))).await.unwrap();
    assert_eq!(forced.data.unwrap()["key"], "2");
    let owners: Vec<_> = forced
        .metadata
        .managed_fields
        .unwrap()
        .into_iter()
        .filter_map(|entry| entry.manager)
        .collect();
    assert_eq!(owners, ["two"]);
}

#[tokio::test]
async fn watchers_and_reflectors_follow() {
    let client = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map("before", "1")).await.unwrap();
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let (reader, writer) = reflector::store();
        let events =
            watcher(maps.clone(), config).default_backoff().reflect(writer).applied_objects();
        let mut events = std::pin::pin!(events);
        assert_eq!(events.try_next().await.unwrap().unwrap().name_any(), "before");
        maps.create(&PostParams::default(), &map("after", "1")).await.unwrap();
        let seen = events.try_next().await.unwrap().unwrap();
        assert_eq!(seen.name_any(), "after");
        assert_eq!(reader.state().len(), 2);
        maps.delete("after", &DeleteParams::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_controller_brings_the_world_in_line() {
    let client = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map("work", "1")).await.unwrap();
    let context = Arc::new(maps.clone());
    let reconcile = |object: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>| async move {
        let patch = json!({"metadata": {"annotations": {"done": "true"}}});
        maps.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok::<_, kube::Error>(Action::await_change())
    };
    let fail = |_: Arc<ConfigMap>, _: &kube::Error, _: Arc<Api<ConfigMap>>| {
        Action::requeue(Duration::from_secs(1))
    };
    let mut runs = std::pin::pin!(
        Controller::new(maps.clone(), watcher::Config::default()).run(reconcile, fail, context)
    );
    runs.next().await.unwrap().unwrap();
    let done = maps.get("work").await.unwrap();
    assert_eq!(done.annotations()["done"], "true");
    // Its own write wakes it once more; that pass changes nothing, and so it comes to rest.
    let version = done.resource_version();
    drop(tokio::time::timeout(Duration::from_millis(300), runs.next()).await);
    drop(tokio::time::timeout(Duration::from_millis(300), runs.next()).await);
    assert_eq!(maps.get("work").await.unwrap().resource_version(), version);
}

#[tokio::test]
async fn a_lease_has_one_holder() {
    let client = in_process().await;
    let leases: Api<Lease> = Api::default_namespaced(client);
    let lease = |holder: &str| -> Lease {
        serde_json::from_value(json!({"metadata": {"name": "leader"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}})).unwrap()
    };
    let made = leases.create(&PostParams::default(), &lease("a")).await.unwrap();
    let claims = (0..8).map(|index| {
        let mut claim = lease(&format!("b{index}"));
        claim.metadata.resource_version = made.resource_version();
        let leases = leases.clone();
        async move { leases.replace("leader", &PostParams::default(), &claim).await.is_ok() }
    });
    let won = futures_util::future::join_all(claims).await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 1);
}

/// A server on the network, a client that its kubeconfig leads to, and how to end it.
struct Listening {
    server: Arc<Server>,
    client: Client,
    config: kube::Config,
    end: tokio::sync::oneshot::Sender<()>,
    running: tokio::task::JoinHandle<()>,
    _directory: tempfile::TempDir,
}

async fn listening(limits: Limits) -> Listening {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings { limits, ..Settings::in_memory(directory.path().join("kubeconfig")) };
    let home = Home::start(settings).await.unwrap();
    let text = std::fs::read_to_string(directory.path().join("kubeconfig")).unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let server = Arc::clone(&home.server);
    let running = tokio::spawn(async move { home.run(async { drop(ended.await) }).await.unwrap() });
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
    let config = kube::Config::from_custom_kubeconfig(
        kubeconfig,
        &kube::config::KubeConfigOptions::default(),
    )
    .await
    .unwrap();
    let client = Client::try_from(config.clone()).unwrap();
    Listening { server, client, config, end, running, _directory: directory }
}

#[tokio::test]
async fn the_kubeconfig_leads_to_the_server() {
    let Listening { client, end, running, _directory, .. } = listening(Limits::default()).await;
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let mut events =
        std::pin::pin!(maps.watch(&kube::api::WatchParams::default(), "0").await.unwrap());
    events.try_next().await.unwrap().unwrap();
    end.send(()).unwrap();
    // The watch ends as a stream does, not with an error.
    while let Some(event) = events.next().await {
        event.unwrap();
    }
    running.await.unwrap();
}

/// A request whose body is still to come, and has arrived at the server so far.
async fn half_sent(
    listening: &Listening,
) -> (
    tokio::sync::mpsc::UnboundedSender<bytes::Bytes>,
    tokio::task::JoinHandle<Option<http::StatusCode>>,
) {
    let (rest, coming) = tokio::sync::mpsc::unbounded_channel::<bytes::Bytes>();
    rest.send(r#"{"metadata": {"name": "#.into()).unwrap();
    let frames = futures_util::stream::unfold(coming, |mut coming| async {
        let bytes = coming.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(http_body::Frame::data(bytes)), coming))
    });
    let connector = listening.config.rustls_https_connector().unwrap();
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    let client = client.build(connector);
    let url = format!("{}api/v1/namespaces/default/configmaps", listening.config.cluster_url);
    let request = http::Request::post(url)
        .header("content-type", "application/json")
        .body(Box::pin(http_body_util::StreamBody::new(frames)))
        .unwrap();
    let answer = tokio::spawn(async move { Some(client.request(request).await.ok()?.status()) });
    let is_there = "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1";
    loop {
        let metrics = http::Request::get("/metrics").body(Vec::new()).unwrap();
        if listening.client.request_text(metrics).await.unwrap().contains(is_there) {
            return (rest, answer);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_is_on_its_way_is_answered_before_the_end() {
    let listening = listening(Limits::default()).await;
    let (rest, answer) = half_sent(&listening).await;
    listening.end.send(()).unwrap();
    while !listening.server.is_ending() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    rest.send(r#""a"}}"#.into()).unwrap();
    drop(rest);
    assert_eq!(answer.await.unwrap(), Some(http::StatusCode::CREATED));
    listening.running.await.unwrap();
}

#[tokio::test]
async fn what_never_gets_there_is_not_waited_for_without_end() {
    let limits = Limits { shutdown_timeout: Duration::ZERO, ..Limits::default() };
    let listening = listening(limits).await;
    let (rest, answer) = half_sent(&listening).await;
    listening.end.send(()).unwrap();
    listening.running.await.unwrap();
    answer.abort();
    drop(rest);
}
