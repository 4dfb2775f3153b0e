//! What is on the server: objects are applied, and read for a plan.

use anyhow::{Context, Result};
use convoy_controllers::live_objects;
use convoy_plan::{Plan, World};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, ApiCapabilities, ApiResource, Scope};

use crate::cluster::READERS;

const MANAGER: &str = "convoy-demo";

pub(super) struct DemoCluster {
    client: kube::Client,
}

/// The objects at one moment, and what the engine says about them.
pub(super) struct Observation {
    pub(super) world: World,
    pub(super) plan: Plan,
}

impl DemoCluster {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client }
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
    pub(super) async fn observe(&self, now: Timestamp) -> Result<Observation> {
        let world = live_objects::read(self.client.clone(), &READERS, None).await?.world;
        let plan = convoy_plan::plan(&world, now);
        Ok(Observation { world, plan })
    }
}

async fn found(
    client: &kube::Client,
    kind: &GroupVersionKind,
) -> Result<(ApiResource, ApiCapabilities)> {
    let found = discovery::pinned_kind(client, kind).await;
    found.with_context(|| format!("the server does not serve {} {}", kind.api_version(), kind.kind))
}
