//! What is on the server: objects are applied, and read for a plan.

use anyhow::{Context, Result};
use convoy_api::Object;
use convoy_plan::{Plan, World};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, ApiCapabilities, ApiResource, Scope};

const MANAGER: &str = "convoy-demo";

/// The kinds that the plans of the demo read.
const KINDS: [(&str, &str, &str); 24] = [
    ("", "v1", "Namespace"),
    ("", "v1", "Node"),
    ("", "v1", "Pod"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("skyhook.nvidia.com", "v1alpha1", "Skyhook"),
    ("skyhook.nvidia.com", "v1alpha1", "DeploymentPolicy"),
    ("karpenter.sh", "v1", "NodePool"),
    ("karpenter.sh", "v1", "NodeClaim"),
    ("karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass"),
    ("cluster.kubernetes-fleet.io", "v1beta1", "MemberCluster"),
    ("placement.kubernetes-fleet.io", "v1beta1", "ClusterResourcePlacement"),
    ("placement.kubernetes-fleet.io", "v1beta1", "ClusterResourceBinding"),
    ("placement.kubernetes-fleet.io", "v1beta1", "ClusterResourceSnapshot"),
    ("placement.kubernetes-fleet.io", "v1beta1", "ClusterSchedulingPolicySnapshot"),
    ("placement.kubernetes-fleet.io", "v1beta1", "Work"),
    ("cluster.open-cluster-management.io", "v1", "ManagedCluster"),
    ("cluster.open-cluster-management.io", "v1beta2", "ManagedClusterSet"),
    ("cluster.open-cluster-management.io", "v1beta2", "ManagedClusterSetBinding"),
    ("cluster.open-cluster-management.io", "v1beta1", "Placement"),
    ("cluster.open-cluster-management.io", "v1beta1", "PlacementDecision"),
    ("work.open-cluster-management.io", "v1", "ManifestWork"),
    ("work.open-cluster-management.io", "v1alpha1", "ManifestWorkReplicaSet"),
];

pub(super) struct Scene {
    client: kube::Client,
    resources: Vec<ApiResource>,
}

/// The objects at one moment, and what the engine says about them.
pub(super) struct Look {
    pub(super) world: World,
    pub(super) plan: Plan,
}

impl Scene {
    pub(super) async fn open(client: kube::Client) -> Result<Self> {
        let mut resources = Vec::with_capacity(KINDS.len());
        for (group, version, kind) in KINDS {
            let kind = GroupVersionKind::gvk(group, version, kind);
            let (resource, _) = found(&client, &kind).await?;
            resources.push(resource);
        }
        Ok(Self { client, resources })
    }

    /// Applies the objects of a text, in their order.
    pub(super) async fn apply(&self, text: &str) -> Result<()> {
        let objects: Vec<DynamicObject> =
            serde_saphyr::from_multiple(text).context("the objects of the demo are not YAML")?;
        for object in objects {
            let types = object.types.clone().context("an object of the demo has no kind")?;
            let kind = GroupVersionKind::try_from(&types)?;
            let (resource, capabilities) = found(&self.client, &kind).await?;
            let name = object.metadata.name.clone().unwrap_or_default();
            let namespace = object.metadata.namespace.clone().unwrap_or_default();
            let api: Api<DynamicObject> = match capabilities.scope {
                Scope::Cluster => Api::all_with(self.client.clone(), &resource),
                Scope::Namespaced => {
                    Api::namespaced_with(self.client.clone(), &namespace, &resource)
                }
            };
            let patch = PatchParams::apply(MANAGER).force();
            let applied = api.patch(&name, &patch, &Patch::Apply(&object)).await;
            applied.with_context(|| format!("could not apply {} {name}", types.kind))?;
        }
        Ok(())
    }

    /// Reads everything, and plans it as of `now`.
    pub(super) async fn look(&self, now: Timestamp) -> Result<Look> {
        let mut objects = Vec::new();
        for resource in &self.resources {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
            let list = api.list(&ListParams::default()).await;
            let list = list.with_context(|| format!("could not list {}", resource.plural))?;
            for mut item in list {
                // Items of a list need not name their kind.
                item.types = Some(kube::core::TypeMeta {
                    api_version: resource.api_version.clone(),
                    kind: resource.kind.clone(),
                });
                objects.push(Object::from_value(serde_json::to_value(item)?)?);
            }
        }
        let world: World = objects.into_iter().collect();
        let plan = convoy_plan::plan(&world, now);
        Ok(Look { world, plan })
    }
}

async fn found(
    client: &kube::Client,
    kind: &GroupVersionKind,
) -> Result<(ApiResource, ApiCapabilities)> {
    let found = discovery::pinned_kind(client, kind).await;
    found.with_context(|| format!("the server does not serve {} {}", kind.api_version(), kind.kind))
}
