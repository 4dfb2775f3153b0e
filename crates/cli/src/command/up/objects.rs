//! Objects that `convoy up` makes in its own clusters before it says that they are ready.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use convoy_api::schema::crds;
use convoy_apiserver::transport::Transport;
use http::Method;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long to wait for a cluster, or a definition, to become ready.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What the controllers of a cluster need before anybody uses them.
#[derive(Debug)]
pub(super) struct Prerequisites {
    /// Dialects whose definitions are installed.
    pub(super) dialects: Vec<&'static str>,
    pub(super) namespaces: Vec<String>,
}

impl Prerequisites {
    pub(super) async fn create(&self, cluster: &Transport) -> Result<()> {
        for dialect in &self.dialects {
            install(cluster, dialect, |_| true).await?;
        }
        for name in &self.namespaces {
            namespace(cluster, name).await?;
        }
        Ok(())
    }
}

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

pub(super) async fn namespace(cluster: &Transport, name: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    create(cluster, "/api/v1/namespaces", &object).await
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
    is_true(definition, "Established")
}

/// Whether a condition of an object is true.
pub(super) fn is_true(object: &Value, condition: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}
