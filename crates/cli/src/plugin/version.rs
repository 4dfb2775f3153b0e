//! `kubectl skyhook version`, and which operator runs.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use convoy_api::Object;
use convoy_api::object::member::{list, text};
use convoy_api::text::GoDuration;

use super::arguments::{Leaf, duration};
use super::cluster::Cluster;
use super::global::Global;
use crate::output;

/// The version of this plugin.
pub(super) const OWN: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, clap::Args)]
pub(super) struct Version {
    /// Print only the version of the plugin
    #[arg(long)]
    client_only: bool,
    /// Time limit for the request to the server
    #[arg(long, default_value = "10s", value_parser = duration)]
    timeout: GoDuration,
    #[arg(hide = true)]
    words: Vec<String>,
}

impl Leaf for Version {}

impl Version {
    pub(super) async fn print(&self, global: &Global) -> Result<()> {
        output::print(&format!("Skyhook plugin:\t{OWN}\n"))?;
        if self.client_only {
            return Ok(());
        }
        let cluster = Cluster::connect(global).await?;
        let limit = Duration::try_from(self.timeout.signed()).unwrap_or_default();
        let found = tokio::time::timeout(limit, operator(&cluster, global.namespace())).await;
        let operator = match found {
            Ok(Ok(version)) => version,
            Ok(Err(error)) => format!("unknown ({error:#})"),
            Err(_) => {
                let namespace = global.namespace();
                format!(
                    "unknown (listing deployments in namespace {namespace:?}: context deadline \
                     exceeded)"
                )
            }
        };
        output::print(&format!("Skyhook operator:\t{operator}\n"))
    }
}

/// The version of the operator in a namespace.
pub(super) async fn operator(cluster: &Cluster, namespace: &str) -> Result<String> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let listed = cluster.list(&path).await;
    let deployments =
        listed.with_context(|| format!("listing deployments in namespace {namespace:?}"))?;
    match deployments.iter().find_map(version_of) {
        Some(version) => Ok(version),
        None => bail!(
            "unable to determine operator version; no skyhook operator deployment found in \
             namespace {namespace:?}"
        ),
    }
}

/// The version of a Deployment, if it is the operator's and tells it.
fn version_of(deployment: &Object) -> Option<String> {
    let mentions = |text: &str| text.to_lowercase().contains("skyhook");
    let template = deployment.spec().get("template").and_then(|template| template.get("spec"));
    let images: Vec<&str> = template
        .into_iter()
        .flat_map(|pod| list(pod, "containers"))
        .map(|container| text(container, "image"))
        .collect();
    let is_operator = images.iter().any(|image| mentions(image))
        || deployment.labels().any(|(key, value)| mentions(key) || mentions(value));
    if !is_operator {
        return None;
    }
    let label = deployment.label("app.kubernetes.io/version").map(str::trim);
    let version = label.filter(|label| !label.is_empty());
    let tags = || images.iter().filter_map(|image| tag(image)).find(|tag| *tag != "latest");
    version.or_else(tags).map(str::to_owned)
}

/// The tag of an image.
fn tag(image: &str) -> Option<&str> {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let name = image.rsplit_once('/').map_or(image, |(_, name)| name);
    name.rsplit_once(':').map(|(_, tag)| tag.trim()).filter(|tag| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use convoy_testkit::object;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operator_is_known_by_its_image_or_labels() {
        let deployment = |image: &str| {
            object("apps/v1", "Deployment", "d")
                .spec(json!({"template": {"spec": {"containers": [{"image": image}]}}}))
        };
        let of = |deployment: convoy_testkit::Builder| version_of(&deployment.build());
        assert_eq!(
            of(deployment("host:5000/skyhook/operator:v1.2.3@sha256:1")).as_deref(),
            Some("v1.2.3")
        );
        assert_eq!(of(deployment("host:5000/skyhook/operator")), None);
        assert_eq!(of(deployment("skyhook:latest")), None);
        assert_eq!(of(deployment("web:v1")), None);
        let labelled = deployment("web:v1").label("app", "skyhook-operator");
        assert_eq!(
            of(labelled.label("app.kubernetes.io/version", "v0.9")).as_deref(),
            Some("v0.9")
        );
    }
}
