//! `convoy get`: all rollouts, a line each.

use std::process::ExitCode;

use anyhow::Result;
use convoy_plan::Step;
use serde_json::json;

use super::source::{SourceArgs, has_errors};
use crate::exit;
use crate::output::{self, TableFormat};
use crate::rollouts::{self, Target};
use crate::text::listing::{self, Columns};

/// List rollouts: status, progress, and what holds each most
///
/// Rollouts are Skyhooks, ClusterResourcePlacements, ResourcePlacements and their update runs and
/// evictions, Deployments, NodePools, Placements and ManifestWorkReplicaSets, as far as the cluster
/// has them. Nothing is changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 success, 1 the cluster could not be read or a rollout was \
    not found, 2 an object is invalid or the usage was wrong.")]
pub(crate) struct Args {
    /// A kind (`skyhook`, `deploy`), a name, or `KIND/NAME` [default: all rollouts]
    #[arg(value_name = "KIND/NAME", num_args = 0..=2)]
    target: Vec<String>,
    #[command(flatten)]
    source: SourceArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableFormat,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { target, source, output } = args;
    let target = Target::read_filter(&target);
    target.check_kind()?;
    let source = source.open()?;
    let report = source.report(&target.dialects())?;
    let all = rollouts::within(&report, source.namespace.as_deref());
    let steps: Vec<&Step> = all.iter().filter(|step| target.matches(step)).copied().collect();
    if target.name.is_some() {
        target.find(&all)?;
    }
    let world = &report.manifests.world;
    if let Some(format) = output.document() {
        let listed = steps
            .iter()
            .map(|step| rollouts::to_json(step, world.get(&step.rollout), listing::reason(step)));
        let listed: Vec<_> = listed.collect();
        let now = report.plan.now.to_string();
        output::print_value(&json!({"now": now, "rollouts": listed}), format)?;
    } else if output == TableFormat::Name {
        let names: Vec<String> =
            steps.iter().map(|step| rollouts::full_name(&step.rollout)).collect();
        output::print(&output::lines(&names))?;
    } else if steps.is_empty() {
        eprintln!("{}", nothing_found(source.namespace.as_deref()));
    } else {
        let columns =
            Columns { namespace: source.namespace.is_none(), wide: output == TableFormat::Wide };
        output::print(&listing::table(&steps, world, report.plan.now, columns))?;
    }
    Ok(if has_errors(&report) { ExitCode::from(exit::UNREADABLE) } else { ExitCode::SUCCESS })
}

fn nothing_found(namespace: Option<&str>) -> String {
    match namespace {
        Some(space) => format!("No rollouts found in namespace {space} or of cluster scope."),
        None => "No rollouts found.".to_owned(),
    }
}
