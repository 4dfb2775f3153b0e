//! The commands of `kubectl skyhook` on whole Skyhooks.

use std::fmt::Write;

use anyhow::{Context, Result, bail, ensure};
use convoy_api::Object;
use convoy_plan::dialect::skyhook::manual::{self, Switch};

use super::arguments::Leaf;
use super::cluster::PatchTarget;
use super::{Session, Target, confirm, version};
use crate::output;

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

pub(super) async fn switch(
    session: &Session,
    command: &SwitchCommand,
    target: &Target,
) -> Result<()> {
    let SwitchCommand { switch, verb, done } = command;
    let name = target.skyhook();
    let skyhook = session.cluster.skyhook(name).await?;
    if session.global.dry_run {
        return output::print(&format!("[dry-run] Would {verb} Skyhook {name:?}\n"));
    }
    if !confirm::switched(&format!("This will {verb} Skyhook {name:?}."), target.confirm)? {
        return Ok(());
    }
    refuse_old_operator(session, command, &skyhook).await?;
    session.cluster.patch(PatchTarget::Skyhook, name, &switch.patch()).await?;
    output::print(&format!("Skyhook {name:?} {done}\n"))
}

/// Operators before the one that reads annotations would not notice.
async fn refuse_old_operator(
    session: &Session,
    command: &SwitchCommand,
    skyhook: &Object,
) -> Result<()> {
    let since = manual::ANNOTATIONS_SINCE;
    let version = match manual::written_by(skyhook) {
        Some(version) => Ok(version.to_owned()),
        None => version::operator(&session.cluster, session.global.namespace()).await,
    };
    let Some(version) = version.ok().filter(|version| manual::is_version(version)) else {
        eprintln!(
            "Warning: unable to determine operator version; cannot verify compatibility \
             (requires {since}+)"
        );
        return Ok(());
    };
    if manual::obeys_annotations(&version) {
        return Ok(());
    }
    let is_paused = match command.switch {
        Switch::Pause => true,
        Switch::Resume => false,
        Switch::Disable | Switch::Enable => bail!(
            "operator version {version} does not support {}; this feature was added in {since}",
            command.verb
        ),
    };
    bail!(
        "operator version {version} uses spec.pause instead of annotations; use 'kubectl edit \
         skyhook {}' and set spec.pause: {is_paused}",
        skyhook.name()
    )
}

#[derive(Debug, clap::Args)]
pub(super) struct Reset {
    #[command(flatten)]
    target: Target,
    /// Keep the batch state
    #[arg(long)]
    skip_batch_reset: bool,
}

impl Leaf for Reset {
    fn arity(&self) -> Result<()> {
        self.target.arity()
    }
}

impl Reset {
    pub(super) async fn run(&self, session: &Session) -> Result<()> {
        let name = self.target.skyhook();
        let nodes = session.cluster.nodes().await?;
        let nodes: Vec<&Object> =
            nodes.iter().filter(|node| manual::remembers(node, name)).collect();
        let skyhook = session.cluster.found_skyhook(name).await?;
        let (compartments, batches) = skyhook
            .as_ref()
            .map(manual::batches)
            .filter(|_| !self.skip_batch_reset)
            .unwrap_or_default();
        if nodes.is_empty() {
            output::print(&format!("No nodes have state for Skyhook {name:?}\n"))?;
            session.cluster.skyhook(name).await?;
            if batches.is_empty() {
                return Ok(());
            }
        }
        if !self.announce(session, &nodes)? {
            return Ok(());
        }
        // The status goes first: whoever reads it between two nodes finds a run that has not begun.
        let forget_picks = |skyhook: &Object| manual::forget_picks(skyhook, self.skip_batch_reset);
        session.cluster.update(PatchTarget::SkyhookStatus, name, forget_picks).await?;
        let errors = session.cluster.update_nodes(&nodes, |node| manual::forget(node, name)).await;
        let done = format!("for Skyhook {name:?}");
        let result = report_nodes(&errors, "resetting", nodes.len(), ("reset", &done));
        if skyhook.is_none() {
            eprintln!("Warning: Skyhook {name:?} not found; only its nodes were reset");
        }
        if compartments > 0 {
            output::print(&format!("Batch state reset for Skyhook {name:?}\n"))?;
        }
        result
    }

    /// Prints what is reset, and asks; false if nothing is to be done.
    fn announce(&self, session: &Session, nodes: &[&Object]) -> Result<bool> {
        let (name, count) = (self.target.skyhook(), nodes.len());
        if count > 0 {
            let mut text = format!("Skyhook: {name}\n{}", nodes_to_reset(session, nodes, name));
            if !self.skip_batch_reset {
                text.push_str(
                    "\nBatch state will also be reset (use --skip-batch-reset to preserve)\n",
                );
            }
            output::print(&text)?;
        }
        if session.global.dry_run {
            output::print("\n[dry-run] No changes applied\n")?;
            return Ok(false);
        }
        let mut warning = format!(
            "This will remove ALL package state for Skyhook {name:?} on {count} node(s).\n\
             All packages will re-run from the beginning.\n"
        );
        if !self.skip_batch_reset {
            warning.push_str("Batch state will be reset to start from batch 1.\n");
        }
        confirm::forgotten(&warning, self.target.confirm)
    }
}

/// The nodes that forget their packages, a line each.
pub(super) fn nodes_to_reset(session: &Session, nodes: &[&Object], skyhook: &str) -> String {
    let mut text = format!("Nodes to reset ({}):\n", nodes.len());
    for node in nodes {
        let packages = session.packages(node, skyhook).unwrap_or_default().len();
        _ = writeln!(text, "  - {} ({packages} packages)", node.name());
    }
    text
}

/// Prints how many of `total` nodes were changed, and why the others were not: that is an error.
pub(super) fn report_nodes(
    errors: &[String],
    doing: &str,
    total: usize,
    (done, of): (&str, &str),
) -> Result<()> {
    let mut text = String::new();
    if !errors.is_empty() {
        _ = writeln!(text, "\nErrors {doing} some nodes:");
        for error in errors {
            _ = writeln!(text, "  - {error}");
        }
    }
    if total > errors.len() {
        let changed = format!("Successfully {done} {} node(s) {of}", total - errors.len());
        _ = writeln!(text, "\n{}", changed.trim_end());
    }
    output::print(&text)?;
    ensure!(errors.is_empty(), "{} of {total} node(s) could not be {done}", errors.len());
    Ok(())
}

pub(super) async fn reset_batches(session: &Session, target: &Target) -> Result<()> {
    let name = target.skyhook();
    let skyhook = session.cluster.skyhook(name).await?;
    let (total, batches) = manual::batches(&skyhook);
    if total == 0 {
        return output::print(&format!("Skyhook {name:?} has no compartment statuses to reset\n"));
    }
    let mut text = format!(
        "Skyhook: {name}\nCompartments: {total} total, {} with batch state\n",
        batches.len()
    );
    if !batches.is_empty() {
        text.push_str("\nCurrent batch state:\n");
    }
    for state in &batches {
        let manual::Batches { compartment, batch, completed, failed } = state;
        _ = writeln!(
            text,
            "  - {compartment}: batch {batch}, {completed} completed, {failed} failed"
        );
    }
    output::print(&text)?;
    if session.global.dry_run {
        return output::print(
            "\n[dry-run] Would reset batch state to:\n  - CurrentBatch: 1\n  \
             - ConsecutiveFailures: 0\n  - CompletedNodes: 0\n  - FailedNodes: 0\n  \
             - ShouldStop: false\n\n[dry-run] No changes applied\n",
        );
    }
    let warning = format!(
        "This will reset the batch state for Skyhook {name:?}.\n\
         The next reconciliation will start from batch 1.\n"
    );
    if !confirm::forgotten(&warning, target.confirm)? {
        return Ok(());
    }
    let reset = session.cluster.update(PatchTarget::SkyhookStatus, name, manual::reset_batches);
    reset.await.context("patching skyhook status")?;
    output::print(&format!("\nSuccessfully reset batch state for Skyhook {name:?}\n"))
}
