//! Requests of the plugin to the API server.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use convoy_api::Object;
use convoy_controllers::connect::{ConnectError, Connection, connect_with};
use futures_util::{AsyncReadExt, StreamExt};
use http::{Method, Request};
use kube::config::KubeconfigError;
use serde_json::Value;

use super::global::Global;
use crate::output;

const SKYHOOKS: &str = "/apis/skyhook.nvidia.com/v1alpha1/skyhooks";
const NODES: &str = "/api/v1/nodes";

/// How many nodes are patched at the same time.
const NODES_AT_ONCE: usize = 16;

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
        let Global { kubeconfig, context, .. } = global;
        let connected =
            connect_with(kubeconfig.as_deref(), context.as_deref(), global.overrides()).await;
        let connected = connected.map_err(unusable).context("building rest config");
        Ok(Self(connected.context("initializing kubernetes client")?))
    }

    pub(super) async fn skyhook(&self, name: &str) -> Result<Object> {
        let found = self.found_skyhook(name).await?;
        found.ok_or_else(|| {
            let missing = anyhow!("skyhooks.skyhook.nvidia.com {name:?} not found");
            missing.context(format!("getting skyhook {name:?}"))
        })
    }

    /// A Skyhook, if it exists.
    pub(super) async fn found_skyhook(&self, name: &str) -> Result<Option<Object>> {
        let request = Request::get(format!("{SKYHOOKS}/{name}")).body(Vec::new())?;
        match self.0.client.request(request.clone()).await {
            Ok(read) => Ok(Some(Object::from_value(read)?)),
            Err(kube::Error::Api(status)) if status.code == 404 && names_object(&status) => {
                Ok(None)
            }
            Err(error) => Err(self.in_words(&request, error))
                .with_context(|| format!("getting skyhook {name:?}")),
        }
    }

    pub(super) async fn skyhooks(&self) -> Result<Vec<Object>> {
        self.list(SKYHOOKS).await.context("listing skyhooks")
    }

    /// All nodes, by name.
    pub(super) async fn nodes(&self) -> Result<Vec<Object>> {
        self.list(NODES).await.context("listing nodes")
    }

    /// The items of a list, with `kind` and `apiVersion`, which the server leaves out.
    pub(super) async fn list(&self, path: &str) -> Result<Vec<Object>> {
        let mut list = self.send(Request::get(path).body(Vec::new())?).await?;
        let version = list["apiVersion"].clone();
        let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
        let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let whole = items.into_iter().map(|mut item| {
            (item["apiVersion"], item["kind"]) = (version.clone(), kind.clone().into());
            Ok(Object::from_value(item)?)
        });
        whole.collect()
    }

    pub(super) async fn patch(&self, target: PatchTarget, name: &str, patch: &Value) -> Result<()> {
        let sent = self.send(patch_request(target, name, patch)?).await;
        sent.with_context(|| attempted(target, name))?;
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
            let sent = self.attempt(patch_request(target, name, &patch)?).await;
            match sent.with_context(|| attempted(target, name))? {
                Attempt::Done(_) | Attempt::Gone => return Ok(()),
                Attempt::Conflict => {
                    tokio::time::sleep(Duration::from_millis(10 * attempt)).await;
                }
            }
        }
        bail!("{name} changed {ATTEMPTS_MAX} times while it was being patched; try again")
    }

    /// Patches nodes, as they are at that moment. Returns what went wrong, by node.
    pub(super) async fn update_nodes(
        &self,
        nodes: &[&Object],
        patch: impl Fn(&Object) -> Option<Value>,
    ) -> Vec<String> {
        let patch = &patch;
        let updates = futures_util::stream::iter(nodes).map(|node| async move {
            let updated = self.update(PatchTarget::Node, node.name(), patch).await;
            updated.err().map(|error| format!("{}: {error:#}", node.name()))
        });
        let results: Vec<Option<String>> = updates.buffered(NODES_AT_ONCE).collect().await;
        results.into_iter().flatten().collect()
    }

    async fn attempt(&self, request: Request<Vec<u8>>) -> Result<Attempt> {
        match self.0.client.request(request.clone()).await {
            Ok(response) => Ok(Attempt::Done(response)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Attempt::Gone),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Attempt::Conflict),
            Err(error) => Err(self.in_words(&request, error)),
        }
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<Value> {
        let sent = self.0.client.request(request.clone()).await;
        sent.map_err(|error| self.in_words(&request, error))
    }

    /// Prints a response as it arrives.
    pub(super) async fn follow(&self, path: &str) -> Result<()> {
        let request = Request::get(path).body(Vec::new())?;
        let opened = self.0.client.request_stream(request.clone()).await;
        let opened = opened.map_err(|error| self.in_words(&request, error));
        let mut stream = std::pin::pin!(opened.context("opening log stream")?);
        let mut part = vec![0; 16 << 10];
        loop {
            match stream.read(&mut part).await.context("reading logs")? {
                0 => return Ok(()),
                length => output::print(&String::from_utf8_lossy(&part[..length]))?,
            }
        }
    }

    /// Why a request failed, as other clients of the API say it.
    fn in_words(&self, request: &Request<Vec<u8>>, error: kube::Error) -> anyhow::Error {
        let status = match error {
            kube::Error::Api(status) => status,
            error => return self.unanswered(request, &error),
        };
        match status.code {
            404 if !names_object(&status) => {
                anyhow!("the server could not find the requested resource")
            }
            _ => anyhow!(status.message),
        }
    }

    /// Why a request got no response.
    fn unanswered(&self, request: &Request<Vec<u8>>, error: &kube::Error) -> anyhow::Error {
        let mut cause: &dyn std::error::Error = error;
        let mut is_refused = false;
        while let Some(source) = cause.source() {
            cause = source;
            let io = cause.downcast_ref::<std::io::Error>();
            is_refused |= io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused);
        }
        let address = self.0.url.trim_end_matches('/');
        let host = address.split_once("://").map_or(address, |(_, host)| host);
        let host = host.split('/').next().unwrap_or_default();
        let cause = if is_refused {
            format!("dial tcp {host}: connect: connection refused")
        } else {
            cause.to_string()
        };
        let verb = if *request.method() == Method::PATCH { "Patch" } else { "Get" };
        anyhow!("{verb} \"{address}{}\": {cause}", request.uri())
    }
}

/// Why a kubeconfig cannot be used, as kubectl says it where it has words for it.
fn unusable(error: ConnectError) -> anyhow::Error {
    match error {
        ConnectError::Kubeconfig(KubeconfigError::LoadContext(name)) => {
            anyhow!("context {name:?} does not exist")
        }
        ConnectError::Kubeconfig(KubeconfigError::LoadClusterOfContext(name)) => {
            anyhow!("cluster {name:?} does not exist")
        }
        ConnectError::NoKubeconfig { path: Some(path), .. } => {
            anyhow!("stat {}: no such file or directory", path.display())
        }
        ConnectError::User { name } => anyhow!("auth info {name:?} does not exist"),
        ConnectError::Kubeconfig(KubeconfigError::ReadConfig(error, path))
            if error.kind() == std::io::ErrorKind::NotFound =>
        {
            anyhow!("stat {}: no such file or directory", path.display())
        }
        error => error.into(),
    }
}

/// Whether an answer is about an object, and not about an address that nobody serves.
fn names_object(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

fn attempted(target: PatchTarget, name: &str) -> String {
    match target {
        PatchTarget::Skyhook => format!("patching skyhook {name:?}"),
        PatchTarget::SkyhookStatus => format!("patching skyhook {name:?} status"),
        PatchTarget::Node => format!("patching node {name:?}"),
    }
}
