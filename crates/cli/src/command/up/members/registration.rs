//! What a member cluster of `convoy up` needs on the hub and on itself before its agents start:
//! definitions, its MemberCluster and ManagedCluster, its claims.

use anyhow::Result;
use convoy_apiserver::transport::Transport;
use convoy_sim::registration;
use http::Method;
use serde_json::json;

use super::Member;
use crate::command::up::objects::create;

const MEMBER_CLUSTERS: &str = "/apis/cluster.kubernetes-fleet.io/v1beta1/memberclusters";
const MANAGED_CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const CLAIMS: &str = "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims";

/// How often members of KubeFleet report: often, so that people see it.
const HEARTBEAT_SECS: u32 = 15;

/// Registers a member with KubeFleet.
pub(super) async fn member_cluster(hub: &Transport, member: &Member) -> Result<()> {
    let Member { name, labels, .. } = member;
    let object = registration::member_cluster(name, labels, HEARTBEAT_SECS);
    create(hub, MEMBER_CLUSTERS, &object).await
}

/// Registers a member with Open Cluster Management, accepted. The set `global` has every cluster.
pub(super) async fn managed_cluster(hub: &Transport, member: &Member) -> Result<()> {
    let object = registration::managed_cluster(&member.name, member.labels.clone());
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
