//! Requests of the plugin to the API server.

use anyhow::{Context, Result};
use convoy_api::Object;
use convoy_controllers::connect::{Connection, connect};
use futures_util::{AsyncBufReadExt, TryStreamExt};
use http::Request;
use serde_json::Value;

use super::Global;
use crate::output;

const SKYHOOKS: &str = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks";
const NODES: &str = "/api/v1/nodes";

/// An API server with the Skyhook kinds.
pub(super) struct Cluster(Connection);

/// The resource that a patch is sent to.
#[derive(Clone, Copy, Debug)]
pub(super) enum PatchTarget {
    Skyhook,
    SkyhookStatus,
    Node,
}

impl Cluster {
    pub(super) async fn connect(global: &Global) -> Result<Self> {
        let connection = connect(global.kubeconfig.as_deref(), global.context.as_deref()).await?;
        Ok(Self(connection))
    }

    pub(super) async fn skyhook(&self, name: &str) -> Result<Object> {
        let raw = self.get(&format!("{SKYHOOKS}/{name}")).await;
        Ok(Object::from_value(raw.with_context(|| format!("getting Skyhook {name:?}"))?)?)
    }

    /// All nodes, by name.
    pub(super) async fn nodes(&self) -> Result<Vec<Object>> {
        self.list(NODES).await.context("listing nodes")
    }

    /// The items of a list, with `kind` and `apiVersion`, which the server leaves out.
    pub(super) async fn list(&self, path: &str) -> Result<Vec<Object>> {
        let mut list = self.get(path).await?;
        let version = list["apiVersion"].clone();
        let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
        let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let whole = items.into_iter().map(|mut item| {
            (item["apiVersion"], item["kind"]) = (version.clone(), kind.clone().into());
            Ok(Object::from_value(item)?)
        });
        whole.collect()
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let request = Request::get(path).body(Vec::new())?;
        Ok(self.0.client.request(request).await?)
    }

    pub(super) async fn patch(&self, target: PatchTarget, name: &str, patch: &Value) -> Result<()> {
        let path = match target {
            PatchTarget::Skyhook => format!("{SKYHOOKS}/{name}"),
            PatchTarget::SkyhookStatus => format!("{SKYHOOKS}/{name}/status"),
            PatchTarget::Node => format!("{NODES}/{name}"),
        };
        let request = Request::patch(path)
            .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
            .body(patch.to_string().into_bytes())?;
        let _: Value = self.0.client.request(request).await?;
        Ok(())
    }

    /// Prints a streamed response line by line.
    pub(super) async fn follow(&self, path: &str) -> Result<()> {
        let request = Request::get(path).body(Vec::new())?;
        let mut lines = self.0.client.request_stream(request).await?.lines();
        while let Some(line) = lines.try_next().await? {
            output::print(&format!("{line}\n"))?;
        }
        Ok(())
    }
}
