//! `kubectl skyhook package`.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use convoy_api::Object;
use convoy_api::object::member::text;
use convoy_plan::dialect::skyhook::manual::{self, PackageRecord};
use serde_json::{Value, json};

use super::arguments::{Leaf, exactly_one, parse_stage, skyhook_required};
use super::logs::Logs;
use super::nodes::{NONE_MATCHED, select_nodes, selected_for_change};
use super::render::{self, Format};
use super::rollouts::report_nodes;
use super::{Session, confirm};
use crate::output;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Show the status of a package on the nodes of a Skyhook
    Status(Status),
    /// Run a package again on nodes
    Rerun(Rerun),
    /// Print the logs of a package
    Logs(Logs),
}

#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// Name of the package
    package: Option<String>,
    #[arg(hide = true)]
    more: Vec<String>,
    /// Name of the Skyhook
    #[arg(long)]
    skyhook: Option<String>,
    /// Node, by name or regular expression; can be repeated
    #[arg(long = "node", value_name = "NODE")]
    nodes: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Rerun {
    /// Name of the package
    package: Option<String>,
    #[arg(hide = true)]
    more: Vec<String>,
    /// Name of the Skyhook
    #[arg(long)]
    skyhook: Option<String>,
    /// Node, by name or regular expression; can be repeated
    #[arg(long = "node", value_name = "NODE")]
    nodes: Vec<String>,
    /// Stage to start from: apply, config, interrupt or post-interrupt [default: the first]
    #[arg(long)]
    stage: Option<String>,
    /// Skip the confirmation prompt
    #[arg(short = 'y', long)]
    confirm: bool,
}

impl Action {
    pub(super) fn leaf(&self) -> &dyn Leaf {
        match self {
            Self::Status(status) => status,
            Self::Rerun(rerun) => rerun,
            Self::Logs(logs) => logs,
        }
    }
}

impl Leaf for Status {
    fn arity(&self) -> Result<()> {
        exactly_one(self.package.as_ref(), &self.more)
    }

    fn required(&self) -> Result<()> {
        skyhook_required(self.skyhook.as_deref())
    }
}

impl Leaf for Rerun {
    fn arity(&self) -> Result<()> {
        exactly_one(self.package.as_ref(), &self.more)
    }

    fn required(&self) -> Result<()> {
        match (self.nodes.is_empty(), self.skyhook.as_deref()) {
            (true, None) => bail!("required flag(s) \"node\", \"skyhook\" not set"),
            (true, Some(_)) => bail!("required flag(s) \"node\" not set"),
            (false, skyhook) => skyhook_required(skyhook)?,
        }
        parse_stage(self.stage.as_deref()).map(|_| ())
    }
}

pub(super) async fn act(session: &Session, action: Action) -> Result<()> {
    match action {
        Action::Status(status) => status.print(session).await,
        Action::Rerun(rerun) => rerun.run(session).await,
        Action::Logs(logs) => logs.print(session).await,
    }
}

impl Status {
    async fn print(&self, session: &Session) -> Result<()> {
        let skyhook = self.skyhook.as_deref().unwrap_or_default();
        let package = self.package.as_deref().unwrap_or_default();
        let hook = session.cluster.skyhook(skyhook).await?;
        let all = session.cluster.nodes().await?;
        let nodes: Vec<&Object> = if self.nodes.is_empty() {
            all.iter().collect()
        } else {
            select_nodes(all.iter(), &self.nodes)?
        };
        let of_node = |node: &&Object| -> Vec<(String, PackageRecord)> {
            let packages = session.packages(node, skyhook).unwrap_or_default();
            let known = packages.into_iter().filter(|known| known.name == package);
            known.map(|known| (node.name().to_string(), known)).collect()
        };
        let found: Vec<(String, PackageRecord)> = nodes.iter().flat_map(of_node).collect();
        let document = found.iter().map(|(node, package)| on_node(node, package)).collect();
        if render::print_structured(session.format, &document)? {
            return Ok(());
        }
        if found.is_empty() {
            return output::print(&format!("No package status found for skyhook {skyhook:?}\n"));
        }
        let head = format!("Skyhook: {skyhook}\nPackages: {}\n\n", package_list(&hook));
        output::print(&format!("{head}{}", status_table(&found, session.format)))
    }
}

/// The packages of a Skyhook with their versions.
fn package_list(hook: &Object) -> String {
    let packages = hook.spec().get("packages").and_then(Value::as_object);
    let mut packages: Vec<String> = packages
        .into_iter()
        .flatten()
        .map(|(name, package)| format!("{name}:{}", text(package, "version")))
        .collect();
    packages.sort_unstable();
    packages.join(", ")
}

/// A package as the node records it, with the name of the node.
fn on_node(node: &str, package: &PackageRecord) -> Value {
    let mut json =
        json!({"name": package.name, "version": package.version, "image": package.image});
    if !package.container_sha.is_empty() {
        json["containerSHA"] = package.container_sha.clone().into();
    }
    json["stage"] = package.stage.into();
    json["state"] = package.state_word().into();
    if package.restarts != 0 {
        json["restarts"] = package.restarts.into();
    }
    json["nodeName"] = node.into();
    json
}

fn status_table(found: &[(String, PackageRecord)], format: Format) -> String {
    let mut headers = vec!["NODE", "PACKAGE", "VERSION", "STAGE", "STATE"];
    let is_wide = format == Format::Wide;
    headers.extend(["RESTARTS", "IMAGE"].iter().filter(|_| is_wide));
    let rows = found.iter().map(|(node, package)| {
        let mut row = vec![
            node.clone(),
            package.name.clone(),
            package.version.clone(),
            package.stage.to_owned(),
            package.state_word().to_owned(),
        ];
        if is_wide {
            row.extend([package.restarts.to_string(), package.image.clone()]);
        }
        row
    });
    render::table(&headers, &rows.collect::<Vec<_>>())
}

impl Rerun {
    async fn run(&self, session: &Session) -> Result<()> {
        let skyhook = self.skyhook.as_deref().unwrap_or_default();
        let package = self.package.as_deref().unwrap_or_default();
        let stage = parse_stage(self.stage.as_deref())?;
        let hook = session.cluster.skyhook(skyhook).await?;
        let version = hook.spec().pointer(&format!("/packages/{package}/version"));
        let version = version
            .and_then(Value::as_str)
            .with_context(|| format!("package {package:?} not found in skyhook {skyhook:?}"))?;
        let all = session.cluster.nodes().await?;
        let recording = all.iter().filter(|node| session.packages(node, skyhook).is_some());
        let matched = selected_for_change(recording.clone(), &self.nodes)?;
        if matched.is_empty() {
            return output::print(NONE_MATCHED);
        }
        let patch = |node: &Object| manual::rerun(node, skyhook, (package, version), stage);
        let nodes: Vec<&Object> =
            matched.into_iter().filter(|node| patch(node).is_some()).collect();
        if nodes.is_empty() {
            return output::print(&format!(
                "Package {package:?} (version {version}) has no state on matched nodes\n"
            ));
        }
        self.announce(session, version, &nodes)?;
        if session.global.dry_run {
            return output::print("\n[dry-run] No changes applied\n");
        }
        if !confirm::forgotten(&self.warning(), self.confirm)? {
            return Ok(());
        }
        let errors = session.cluster.update_nodes(&nodes, patch).await;
        let done = format!("reset package {package:?} on");
        report_nodes(&errors, "updating", nodes.len(), (&done, ""))
    }

    /// Prints what runs again, and where.
    fn announce(&self, session: &Session, version: &str, nodes: &[&Object]) -> Result<()> {
        let skyhook = self.skyhook.as_deref().unwrap_or_default();
        let package = self.package.as_deref().unwrap_or_default();
        let mut text = format!("Package: {package} (version {version})\nSkyhook: {skyhook}\n");
        if let Some(stage) = self.stage() {
            _ = writeln!(text, "Re-run from stage: {stage}");
        }
        _ = writeln!(text, "Nodes to reset ({}):", nodes.len());
        for node in nodes {
            let packages = session.packages(node, skyhook).unwrap_or_default();
            let is_it = |known: &&PackageRecord| known.name == package && known.version == version;
            let Some(known) = packages.iter().find(is_it) else { continue };
            let (name, state, stage) = (node.name(), known.state_word(), known.stage);
            _ = writeln!(text, "  - {name} (current state: {state}, stage: {stage})");
        }
        output::print(&text)
    }

    fn stage(&self) -> Option<&str> {
        self.stage.as_deref().filter(|stage| !stage.is_empty())
    }

    fn warning(&self) -> String {
        match self.stage() {
            Some(stage) => {
                format!("This will reset package state to re-run from the '{stage}' stage.\n")
            }
            None => "This will remove package state from node annotations and cause the package \
                     to re-run from the beginning.\n"
                .to_owned(),
        }
    }
}
