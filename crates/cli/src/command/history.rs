//! `convoy history`: the revisions of a rollout, and what people asked of it.

use std::process::ExitCode;

use anyhow::Result;
use convoy_plan::intervention;
use serde_json::json;

use super::source::SourceArgs;
use crate::output::{self, TableFormat};
use crate::rollouts::{self, Target, dialect_of};
use crate::text::history;

/// Show the revisions of a rollout and what people did to it
///
/// Revisions are the ReplicaSets of a Deployment and the resource snapshots of a placement. Other
/// APIs keep none. Interventions are what was done with convoy pause, resume, abort, retry, undo,
/// approve and reset: the last ten.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 success, 1 the rollout was not found, 2 the usage was wrong."
)]
pub(crate) struct Args {
    /// Name of the rollout, with its kind if several have the name
    #[arg(value_name = "[KIND/]NAME", required = true, num_args = 1..=2)]
    target: Vec<String>,
    #[command(flatten)]
    source: SourceArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableFormat,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { target, source, output } = args;
    let target = Target::read(&target);
    target.check_kind()?;
    let source = source.open()?;
    let report = source.report(&target.dialects())?;
    let step = target.find(&rollouts::within(&report, source.namespace.as_deref()))?;
    let world = &report.manifests.world;
    let rollout = world.get(&step.rollout);
    let revisions =
        rollout.map(|rollout| dialect_of(step).revisions(world, rollout)).unwrap_or_default();
    let records = rollout.map(intervention::records).unwrap_or_default();
    if let Some(format) = output.document() {
        let object = step.to_json()["object"].take();
        let json = json!({"object": object, "revisions": revisions, "interventions": records});
        output::print_value(&json, format)?;
    } else if output == TableFormat::Name {
        output::print(&format!("{}\n", rollouts::full_name(&step.rollout)))?;
    } else {
        let now = report.plan.now;
        output::print(&history::history(&step.rollout, &revisions, &records, now))?;
    }
    Ok(ExitCode::SUCCESS)
}
