//! What a Deployment does over its life.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use crate::cluster::{Cluster, both, is_ready, start};

#[tokio::test]
async fn a_deployment_gets_its_set_and_its_pods() {
    let cluster = Cluster::new().await;
    let running = start(&cluster.client, both());
    cluster.create(3).await;
    cluster.roll(|_, _| {}).await;
    let deployment = cluster.deployments().get("web").await.unwrap();
    let sets = cluster.sets().list(&ListParams::default()).await.unwrap().items;
    let [set] = sets.as_slice() else { panic!("{sets:?}") };
    let owner = &set.owner_references()[0];
    assert_eq!(Some(&owner.uid), deployment.metadata.uid.as_ref());
    let hash = &set.labels()["pod-template-hash"];
    assert_eq!(set.name_any(), format!("web-{hash}"));
    let pods = cluster.live_pods().await;
    assert_eq!(pods.len(), 3);
    for pod in &pods {
        assert_eq!(Some(&pod.owner_references()[0].uid), set.metadata.uid.as_ref());
        assert_eq!(&pod.labels()["pod-template-hash"], hash);
        assert!(pod.name_any().starts_with(&format!("web-{hash}-")));
    }
    let conditions = deployment.status.unwrap().conditions.unwrap();
    let word =
        |kind: &str| conditions.iter().find(|found| found.type_.as_deref() == Some(kind)).unwrap();
    assert_eq!(word("Available").status.as_deref(), Some("True"));
    assert_eq!(word("Progressing").reason.as_deref(), Some("NewReplicaSetAvailable"));
    running.end().await;
    let events: Api<Event> = Api::default_namespaced(cluster.client.clone());
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let reasons: Vec<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
    assert!(reasons.contains(&"ScalingReplicaSet"), "{reasons:?}");
    assert!(reasons.contains(&"SuccessfulCreate"), "{reasons:?}");
}

#[tokio::test]
async fn an_image_change_stays_within_its_promise() {
    let cluster = Cluster::new().await;
    let running = start(&cluster.client, both());
    cluster.create(4).await;
    cluster.roll(|_, _| {}).await;
    cluster.set_image("web:v2").await;
    let mut looks = 0;
    cluster
        .roll(|asked_for, pods| {
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            assert!(ready >= 3, "{ready} of 4 with one that may be missing");
            assert!(asked_for <= 5, "{asked_for} of 4 with one in surplus");
            assert!(pods.len() <= 5, "{} of 4 with one in surplus", pods.len());
            looks += 1;
        })
        .await;
    assert!(looks > 1);
    cluster.rest().await;
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    let pods = cluster.live_pods().await;
    assert_eq!(pods.len(), 4);
    assert!(pods.iter().all(|pod| image(pod) == "web:v2"));
    let sets = cluster.sets().list(&ListParams::default()).await.unwrap().items;
    let mut sizes: Vec<_> = sets.iter().map(|set| set.spec.replicas).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [Some(0), Some(4)]);
    running.end().await;
}

#[tokio::test]
async fn a_paused_deployment_scales_and_does_not_roll() {
    let cluster = Cluster::new().await;
    let running = start(&cluster.client, both());
    cluster.create(2).await;
    cluster.roll(|_, _| {}).await;
    cluster.patch(json!({"spec": {"paused": true}})).await;
    cluster.set_image("web:v2").await;
    cluster.patch(json!({"spec": {"replicas": 5}})).await;
    cluster.rest().await;
    cluster.make_ready().await;
    cluster.rest().await;
    assert_eq!(cluster.live_pods().await.len(), 5);
    let sets = cluster.sets().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(sets.len(), 1, "nothing new while it is paused");
    cluster.patch(json!({"spec": {"paused": false}})).await;
    cluster.roll(|_, _| {}).await;
    let sets = cluster.sets().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(sets.len(), 2);
    running.end().await;
}
