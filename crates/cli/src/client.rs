//! Requests to a running `convoy up`, by the kubeconfig that it wrote.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use convoy_controllers::connect::identified;
use http::Request;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// Reads a list of files in the format of `KUBECONFIG`; an entry in an earlier file wins over one
/// in a later file, and files that do not exist are skipped.
pub(crate) fn read(list: &Path) -> Result<Kubeconfig> {
    let mut merged = None;
    for path in std::env::split_paths(list).filter(|path| path.exists()) {
        let invalid = || format!("invalid kubeconfig {}", path.display());
        let config = Kubeconfig::read_from(&path).with_context(invalid)?;
        merged = Some(match merged {
            None => config,
            Some(earlier) => Kubeconfig::merge(earlier, config).with_context(invalid)?,
        });
    }
    let shown = list.display();
    merged.with_context(|| format!("no kubeconfig found at {shown}; is `convoy up` running?"))
}

/// Whether the kubeconfig has a context of this name.
pub(crate) fn has_context(config: &Kubeconfig, name: &str) -> bool {
    config.contexts.iter().any(|context| context.name == name)
}

/// The first context whose cluster is at an address.
pub(crate) fn context_of<'a>(config: &'a Kubeconfig, url: &str) -> Option<&'a str> {
    let is_there = |name: &str| {
        config.clusters.iter().any(|named| {
            let server = named.cluster.as_ref().and_then(|cluster| cluster.server.as_deref());
            named.name == name && server.is_some_and(|server| server.trim_end_matches('/') == url)
        })
    };
    let found = config
        .contexts
        .iter()
        .find(|named| named.context.as_ref().is_some_and(|context| is_there(&context.cluster)));
    found.map(|named| named.name.as_str())
}

/// A connection to the first logical cluster with the credentials of one user.
pub(crate) struct Client {
    http: kube::Client,
    /// Address of the first logical cluster.
    pub(crate) url: String,
}

impl Client {
    /// The client that `context` describes, by default the current context.
    pub(crate) async fn new(config: Kubeconfig, context: Option<&str>) -> Result<Self> {
        let name = context.or(config.current_context.as_deref()).filter(|name| !name.is_empty());
        let name = name.context("the kubeconfig has no current context; pass --context")?;
        ensure!(has_context(&config, name), "the kubeconfig has no context {name:?}");
        let options =
            KubeConfigOptions { context: Some(name.to_owned()), ..KubeConfigOptions::default() };
        let invalid = format!("could not use context {name:?} of the kubeconfig");
        let mut config = Config::from_custom_kubeconfig(config, &options).await.context(invalid)?;
        // LogicalCluster objects live in the first logical cluster, whichever the context selects.
        let url = config.cluster_url.to_string();
        let url = url.trim_end_matches('/');
        let url = url.split_once("/clusters/").map_or(url, |(first, _)| first).to_owned();
        config.cluster_url = url.parse()?;
        let http = kube::Client::try_from(identified(config))
            .context("could not prepare the connection")?;
        Ok(Self { http, url })
    }

    /// Sends a request and returns the response body; a status of 400 or more is an error.
    pub(crate) async fn send(
        &self,
        method: http::Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.into_bytes())?;
        match self.http.request(request).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => bail!("{} ({})", status.message, status.code),
            Err(error) => Err(error).with_context(|| format!("could not reach {}", self.url)),
        }
    }
}
