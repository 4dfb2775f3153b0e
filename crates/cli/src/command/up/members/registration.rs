//! What a member cluster of `convoy up` needs on the hub and on itself before its agents start:
//! definitions, its MemberCluster and ManagedCluster, its claims.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use convoy_api::ocm::names::{CLUSTER_SET_LABEL, DEFAULT_CLUSTER_SET};
use convoy_api::schema::crds;
use convoy_apiserver::transport::Transport;
use convoy_plan::dialect::fleet::names::SYSTEM_NAMESPACE;
use http::Method;
use serde_json::{Value, json};

use super::Member;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACES: &str = "/api/v1/namespaces";
const MEMBER_CLUSTERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
const MANAGED_CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const CLAIMS: &str = "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims";

/// How long to wait for a cluster, or a definition, to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Installs the definitions of a dialect whose names are wanted, and waits until they are served.
pub(super) async fn install(
    cluster: &Transport,
    dialect: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<()> {
    let mut names = Vec::new();
    for definition in crds(dialect).unwrap_or_default() {
        let definition = serde_json::to_value(definition).context("could not write a CRD")?;
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        if is_wanted(name) {
            create(cluster, DEFINITIONS, &definition).await?;
            names.push(name.to_owned());
        }
    }
    for name in names {
        await_object(cluster, &format!("{DEFINITIONS}/{name}"), is_established).await?;
    }
    Ok(())
}

/// The namespace of the hub agent, which has the accounts of member agents and the profiles of the
/// clusters.
pub(super) async fn system_namespace(hub: &Transport) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": SYSTEM_NAMESPACE}});
    create(hub, NAMESPACES, &object).await
}

/// Registers a member with KubeFleet.
pub(super) async fn member_cluster(hub: &Transport, member: &Member) -> Result<()> {
    let Member { name, labels, .. } = member;
    let identity = json!({"kind": "ServiceAccount", "apiGroup": "",
        "namespace": SYSTEM_NAMESPACE, "name": name});
    let object = json!({"apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster", "metadata": {"name": name, "labels": labels},
        "spec": {"identity": identity, "heartbeatPeriodSeconds": 15}});
    create(hub, MEMBER_CLUSTERS, &object).await
}

/// Registers a member with Open Cluster Management, accepted. The set `global` has every cluster.
pub(super) async fn managed_cluster(hub: &Transport, member: &Member) -> Result<()> {
    let Member { name, labels, .. } = member;
    let mut labels = labels.clone();
    labels.entry(CLUSTER_SET_LABEL.to_owned()).or_insert_with(|| DEFAULT_CLUSTER_SET.to_owned());
    let object = json!({"apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster", "metadata": {"name": name, "labels": labels},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60}});
    create(hub, MANAGED_CLUSTERS, &object).await
}

/// Claims of a member that placements can select by.
pub(super) async fn claims(cluster: &Transport, name: &str) -> Result<()> {
    let version = cluster.send(Method::GET, "/version", None).await.1;
    let version = version["gitVersion"].as_str().unwrap_or_default().to_owned();
    let claims = [("id.k8s.io", name), ("kubeversion.open-cluster-management.io", &version)];
    for (claim, value) in claims.into_iter().filter(|(_, value)| !value.is_empty()) {
        let object = json!({"apiVersion": "cluster.open-cluster-management.io/v1alpha1",
            "kind": "ClusterClaim", "metadata": {"name": claim}, "spec": {"value": value}});
        create(cluster, CLAIMS, &object).await?;
    }
    Ok(())
}

/// Creates an object, unless it is there from an earlier start.
pub(super) async fn create(hub: &Transport, path: &str, object: &Value) -> Result<()> {
    let (code, answer) = hub.send(Method::POST, path, Some(object)).await;
    if code < 300 || code == 409 {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let message = answer["message"].as_str().unwrap_or("the server sent no message");
    bail!("could not create {} {name}: {message} ({code})", object["kind"]);
}

pub(super) async fn await_object(
    hub: &Transport,
    path: &str,
    is_ready: impl Fn(&Value) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    while !is_ready(&hub.send(Method::GET, path, None).await.1) {
        ensure!(begun.elapsed() < READY_TIMEOUT, "timed out waiting for {path}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    let mut established =
        conditions.into_iter().flatten().filter(|condition| condition["type"] == "Established");
    established.any(|condition| condition["status"] == "True")
}
