//! Requests of the plugin to the API server.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use convoy_api::Object;
use convoy_controllers::connect::{Connection, connect};
use futures_util::{AsyncBufReadExt, TryStreamExt};
use http::Request;
use serde_json::Value;

use super::Global;
use crate::output;

const SKYHOOKS: &str = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks";
const NODES: &str = "/api/v1/nodes";

/// How often an object that others write as well is read again before giving up.
const ATTEMPTS_MAX: u64 = 20;

/// An API server with the Skyhook kinds.
pub(super) struct Cluster(Connection);

/// The resource that a patch is sent to.
#[derive(Clone, Copy, Debug)]
pub(super) enum PatchTarget {
    Skyhook,
    SkyhookStatus,
    Node,
}

impl PatchTarget {
    /// The path of the object that is patched.
    fn object(self, name: &str) -> String {
        match self {
            Self::Skyhook | Self::SkyhookStatus => format!("{SKYHOOKS}/{name}"),
            Self::Node => format!("{NODES}/{name}"),
        }
    }
}

/// What came of a request that others may get in the way of.
enum Attempt {
    Done(Value),
    /// The object does not exist.
    Gone,
    /// It changed since it was read.
    Conflict,
}

fn patch_request(target: PatchTarget, name: &str, patch: &Value) -> Result<Request<Vec<u8>>> {
    let mut path = target.object(name);
    if matches!(target, PatchTarget::SkyhookStatus) {
        path.push_str("/status");
    }
    let request =
        Request::patch(path).header(http::header::CONTENT_TYPE, "application/merge-patch+json");
    Ok(request.body(patch.to_string().into_bytes())?)
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
        let _: Value = self.0.client.request(patch_request(target, name, patch)?).await?;
        Ok(())
    }

    /// Patches an object as it is at that moment: `patch` is asked again if somebody else changed the
    /// object between the read and the write. Nothing happens if it is gone, or if `patch` has nothing
    /// to change.
    pub(super) async fn update(
        &self,
        target: PatchTarget,
        name: &str,
        patch: impl Fn(&Object) -> Option<Value>,
    ) -> Result<()> {
        for attempt in 1..=ATTEMPTS_MAX {
            let read =
                match self.attempt(Request::get(target.object(name)).body(Vec::new())?).await? {
                    Attempt::Done(read) => Object::from_value(read)?,
                    Attempt::Gone | Attempt::Conflict => return Ok(()),
                };
            let Some(mut patch) = patch(&read) else { return Ok(()) };
            patch["metadata"]["resourceVersion"] =
                read.raw()["metadata"]["resourceVersion"].clone();
            match self.attempt(patch_request(target, name, &patch)?).await? {
                Attempt::Done(_) | Attempt::Gone => return Ok(()),
                Attempt::Conflict => {
                    tokio::time::sleep(Duration::from_millis(10 * attempt)).await;
                }
            }
        }
        bail!("{name} changed {ATTEMPTS_MAX} times while it was being patched; try again")
    }

    async fn attempt(&self, request: Request<Vec<u8>>) -> Result<Attempt> {
        match self.0.client.request(request).await {
            Ok(response) => Ok(Attempt::Done(response)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Attempt::Gone),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Attempt::Conflict),
            Err(error) => Err(error.into()),
        }
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
