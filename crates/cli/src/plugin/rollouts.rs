//! The commands of `kubectl skyhook` on whole Skyhooks.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use convoy_api::Object;
use convoy_api::text::GoDuration;
use convoy_plan::dialect::skyhook::manual::{self, Switch};
use futures_util::{StreamExt, TryStreamExt};

use super::cluster::{Cluster, PatchTarget};
use super::{Global, Target};
use crate::output::{self, confirmed};

/// An annotation to set or remove, and the words for it.
pub(super) struct SwitchCommand {
    switch: Switch,
    verb: &'static str,
    done: &'static str,
}

pub(super) const PAUSE: SwitchCommand =
    SwitchCommand { switch: Switch::Pause, verb: "pause", done: "paused" };
pub(super) const RESUME: SwitchCommand =
    SwitchCommand { switch: Switch::Resume, verb: "resume", done: "resumed" };
pub(super) const DISABLE: SwitchCommand =
    SwitchCommand { switch: Switch::Disable, verb: "disable", done: "disabled" };
pub(super) const ENABLE: SwitchCommand =
    SwitchCommand { switch: Switch::Enable, verb: "enable", done: "enabled" };

/// How many nodes are patched at the same time.
const NODES_AT_ONCE: usize = 16;

pub(super) async fn switch(
    cluster: &Cluster,
    global: &Global,
    command: &SwitchCommand,
    target: &Target,
) -> Result<()> {
    let SwitchCommand { switch, verb, done } = command;
    let name = &target.skyhook;
    cluster.skyhook(name).await?;
    if global.dry_run {
        return output::print(&format!("[dry-run] Would {verb} Skyhook {name:?}\n"));
    }
    if !confirmed(&format!("This will {verb} Skyhook {name:?}."), target.confirm)? {
        return Ok(());
    }
    cluster.patch(PatchTarget::Skyhook, name, &switch.patch()).await?;
    output::print(&format!("Skyhook {name:?} {done}\n"))
}

pub(super) async fn reset(
    cluster: &Cluster,
    global: &Global,
    target: &Target,
    skip_batch_reset: bool,
) -> Result<()> {
    let name = &target.skyhook;
    let skyhook = cluster.skyhook(name).await?;
    let nodes = cluster.nodes().await?;
    let nodes: Vec<&Object> =
        nodes.iter().filter(|node| manual::forget(node, name).is_some()).collect();
    let mut text = format!("Nodes with state of Skyhook {name:?}:\n");
    for node in &nodes {
        let packages = manual::packages(node, name).unwrap_or_default().len();
        _ = writeln!(text, "  - {} ({packages} packages)", node.name());
    }
    if !skip_batch_reset {
        text.push_str("Batch state will be reset too.\n");
    }
    output::print(&text)?;
    if global.dry_run {
        return output::print("[dry-run] No changes applied\n");
    }
    let question = format!("This will reset {} node(s) of Skyhook {name:?}.", nodes.len());
    if !confirmed(&question, target.confirm)? {
        return Ok(());
    }
    // The status goes first: whoever reads it between two nodes finds a run that has not begun.
    let forget_picks = |skyhook: &Object| manual::forget_picks(skyhook, skip_batch_reset);
    cluster.update(PatchTarget::SkyhookStatus, name, forget_picks).await?;
    let forgotten =
        futures_util::stream::iter(&nodes).map(Ok).try_for_each_concurrent(NODES_AT_ONCE, |node| {
            cluster.update(PatchTarget::Node, node.name(), |node| manual::forget(node, name))
        });
    forgotten.await?;
    output::print(&format!("Successfully reset {} node(s) for Skyhook {name:?}\n", nodes.len()))?;
    if !skip_batch_reset && manual::batches(&skyhook).0 > 0 {
        output::print(&format!("Batch state reset for Skyhook {name:?}\n"))?;
    }
    Ok(())
}

pub(super) async fn reset_batches(
    cluster: &Cluster,
    global: &Global,
    target: &Target,
) -> Result<()> {
    let name = &target.skyhook;
    let skyhook = cluster.skyhook(name).await?;
    if manual::reset_batches(&skyhook).is_none() {
        return output::print(&format!("Skyhook {name:?} has no compartment statuses to reset\n"));
    }
    let (total, batches) = manual::batches(&skyhook);
    let mut text = format!(
        "Skyhook: {name}\nCompartments: {total} total, {} with batch state\n",
        batches.len()
    );
    for state in &batches {
        let manual::Batches { compartment, batch, completed, failed } = state;
        _ = writeln!(
            text,
            "  - {compartment}: batch {batch}, {completed} completed, {failed} failed"
        );
    }
    output::print(&text)?;
    if global.dry_run {
        let mut text = String::new();
        for state in &batches {
            _ = writeln!(text, "  - {}: batch 1, 0 completed, 0 failed", state.compartment);
        }
        return output::print(&format!("{text}[dry-run] No changes applied\n"));
    }
    if !confirmed(&format!("This will reset the batch state of Skyhook {name:?}."), target.confirm)?
    {
        return Ok(());
    }
    cluster.update(PatchTarget::SkyhookStatus, name, manual::reset_batches).await?;
    output::print(&format!("Successfully reset batch state for Skyhook {name:?}\n"))
}

/// Prints the versions of the plugin and of the operator.
pub(super) async fn version(cluster: &Cluster, global: &Global, timeout: &str) -> Result<()> {
    let wait: GoDuration = timeout.parse().with_context(|| format!("--timeout {timeout:?}"))?;
    let wait = Duration::try_from(wait.signed()).unwrap_or_default();
    let path = format!("/apis/apps/v1/namespaces/{}/deployments", global.namespace);
    let asked = tokio::time::timeout(wait, cluster.list(&path)).await;
    let operator = match asked {
        Err(_) => format!("unknown (no response within {timeout})"),
        Ok(Err(error)) => format!("unknown ({error})"),
        Ok(Ok(deployments)) => deployments
            .iter()
            .find_map(operator_version)
            .unwrap_or_else(|| format!("unknown (no operator in namespace {})", global.namespace)),
    };
    let own = env!("CARGO_PKG_VERSION");
    output::print(&format!("Skyhook plugin:\t{own}\nSkyhook operator:\t{operator}\n"))
}

/// The version of a Deployment, if it is the operator's.
fn operator_version(deployment: &Object) -> Option<String> {
    let image = deployment.spec().pointer("/template/spec/containers/0/image")?.as_str()?;
    let mentions = image.contains("skyhook")
        || deployment.labels().any(|(_, value)| value.contains("skyhook"));
    let tag = image.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    let version = deployment.label("app.kubernetes.io/version").unwrap_or(tag);
    mentions.then(|| version.to_owned())
}
