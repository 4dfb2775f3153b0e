//! `convoy get`: all rollouts, a line each.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use convoy_api::ObjectKey;
use convoy_plan::Step;
use serde_json::json;

use super::source::{Source, SourceArgs, has_errors};
use crate::exit;
use crate::output::{self, TableFormat};
use crate::rollouts::{self, Target};
use crate::text::listing::{self, Columns};

/// How often `--watch` looks.
const INTERVAL: Duration = Duration::from_secs(1);

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
    /// Print every rollout again that changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableFormat,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { target, source, watch, output } = args;
    if watch && output.document().is_some() {
        bail!("--watch prints lines; use it with -o table, wide or name");
    }
    let target = Target::read_filter(&target);
    target.check_kind()?;
    let source = source.open()?;
    let reading = Instant::now();
    let report = source.report(&target.dialects())?;
    let took = reading.elapsed();
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
    if watch {
        return follow(&source, &target, &steps, output, took);
    }
    Ok(if has_errors(&report) { ExitCode::from(exit::UNREADABLE) } else { ExitCode::SUCCESS })
}

/// Prints rollouts that change, for ever.
fn follow(
    source: &Source,
    target: &Target,
    steps: &[&Step],
    output: TableFormat,
    mut took: Duration,
) -> Result<ExitCode> {
    let mut told: BTreeMap<ObjectKey, String> =
        steps.iter().map(|step| (step.rollout.clone(), standing(step))).collect();
    loop {
        // A large cluster is read less often.
        std::thread::sleep(INTERVAL.max(took * 4));
        let reading = Instant::now();
        let report = source.report(&target.dialects())?;
        took = reading.elapsed();
        let all = rollouts::within(&report, source.namespace.as_deref());
        let steps = all.into_iter().filter(|step| target.matches(step));
        let is_new = |step: &&Step| {
            let standing = standing(step);
            told.insert(step.rollout.clone(), standing.clone()) != Some(standing)
        };
        let changed: Vec<&Step> = steps.filter(is_new).collect();
        if changed.is_empty() {
            continue;
        }
        if output == TableFormat::Name {
            let names: Vec<String> =
                changed.iter().map(|step| rollouts::full_name(&step.rollout)).collect();
            output::print(&output::lines(&names))?;
            continue;
        }
        let columns =
            Columns { namespace: source.namespace.is_none(), wide: output == TableFormat::Wide };
        let table = listing::table(&changed, &report.manifests.world, report.plan.now, columns);
        // The headings stand above the first table.
        output::print(table.split_once('\n').map_or("", |(_, rows)| rows))?;
    }
}

/// What a line says about a rollout, without its age.
fn standing(step: &Step) -> String {
    let (flight, failed) = (rollouts::in_flight(step), rollouts::failed(step));
    let (progress, batch) = (step.progress(), rollouts::batch(step));
    format!("{:?}", (step.verdict, progress, batch, flight, failed, listing::reason(step)))
}

fn nothing_found(namespace: Option<&str>) -> String {
    match namespace {
        Some(space) => format!("No rollouts found in namespace {space} or of cluster scope."),
        None => "No rollouts found.".to_owned(),
    }
}
