//! What a member cluster of `convoy up` needs on the hub and on itself before its agents start:
//! definitions, its MemberCluster and ManagedCluster, its claims.

use anyhow::Result;
use convoy_api::ocm::names::{CLUSTER_SET_LABEL, DEFAULT_CLUSTER_SET};
use convoy_apiserver::transport::Transport;
use convoy_plan::dialect::fleet::names::SYSTEM_NAMESPACE;
use http::Method;
use serde_json::json;

use super::Member;
use crate::command::up::objects::create;

const MEMBER_CLUSTERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
const MANAGED_CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const CLAIMS: &str = "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims";

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
