//! `convoy status`: one rollout as a tree, once or until it is done.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use convoy_api::text::GoDuration;
use convoy_plan::{Step, Verdict};

use super::source::{Source, SourceArgs};
use crate::exit;
use crate::output::{self, TableFormat};
use crate::report::Report;
use crate::rollouts::{self, Target};
use crate::text::{listing, tree};

/// How often a rollout is looked at while it is watched.
const INTERVAL: Duration = Duration::from_secs(1);

/// Show a rollout as a tree: groups, batches, members that wait and why
///
/// With --watch, waits until the rollout is done, as `kubectl rollout status` does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 success, with --watch: the rollout is done; 1 the rollout \
    was not found, with --watch: it stopped, is invalid, was deleted, or the timeout passed; 2 the \
    usage was wrong.")]
pub(crate) struct Args {
    /// Name of the rollout, with its kind if several have the name
    #[arg(value_name = "[KIND/]NAME", required = true, num_args = 1..=2)]
    target: Vec<String>,
    /// Wait until the rollout is done; print a line at each change
    #[arg(short, long, conflicts_with = "filename")]
    watch: bool,
    /// How long --watch waits, such as 90s or 10m; 0 waits forever [default: 0]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<GoDuration>,
    #[command(flatten)]
    source: SourceArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableFormat,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { target, watch, timeout, source, output } = args;
    if timeout.is_some() && !watch {
        eprintln!("error: --timeout is how long --watch waits, and needs it");
        return Ok(ExitCode::from(exit::UNREADABLE));
    }
    let target = Target::read(&target);
    target.check_kind()?;
    let source = source.open()?;
    if watch {
        let timeout = Duration::try_from(timeout.unwrap_or_default().signed()).unwrap_or_default();
        return follow(&source, &target, timeout, output);
    }
    let report = source.report(&target.dialects())?;
    show(&report, find(&source, &report, &target)?, output)?;
    Ok(ExitCode::SUCCESS)
}

fn find<'r>(source: &Source, report: &'r Report, target: &Target) -> Result<&'r Step> {
    target.find(&rollouts::within(report, source.namespace.as_deref()))
}

fn show(report: &Report, step: &Step, output: TableFormat) -> Result<()> {
    match output.document() {
        Some(format) => output::print_value(&step.to_json(), format),
        None if output == TableFormat::Name => {
            output::print(&format!("{}\n", rollouts::full_name(&step.rollout)))
        }
        None => output::print(&tree::tree(step, report.plan.now, output == TableFormat::Wide)),
    }
}

/// Looks at a rollout until it is done or cannot become so by itself.
fn follow(
    source: &Source,
    target: &Target,
    timeout: Duration,
    output: TableFormat,
) -> Result<ExitCode> {
    let begun = Instant::now();
    let mut told = String::new();
    loop {
        let read_at = Instant::now();
        let report = source.report(&target.dialects())?;
        let took = read_at.elapsed();
        let step = match find(source, &report, target) {
            Ok(step) => step,
            Err(_) if !told.is_empty() => bail!("the rollout was deleted"),
            Err(error) => return Err(error),
        };
        let line = line(step);
        if line != told && output.document().is_none() {
            output::print(&line)?;
        }
        told = line;
        let is_over = match step.verdict {
            Verdict::Done => Some(ExitCode::SUCCESS),
            Verdict::Stopped | Verdict::Invalid => Some(ExitCode::from(exit::FINDINGS)),
            Verdict::Moving | Verdict::Held | Verdict::Paused => None,
        };
        if let Some(code) = is_over {
            show(&report, step, output)?;
            return Ok(code);
        }
        if !timeout.is_zero() && begun.elapsed() >= timeout {
            show(&report, step, output)?;
            bail!("timed out waiting for the rollout");
        }
        // A large cluster is read less often.
        std::thread::sleep(INTERVAL.max(took * 4));
    }
}

/// How far a rollout is, in one line.
fn line(step: &Step) -> String {
    let (done, total) = step.progress();
    let flight = rollouts::in_flight(step);
    let reason = listing::reason(step).map(|reason| format!(": {reason}")).unwrap_or_default();
    let verdict = format!("{:?}", step.verdict);
    format!("{verdict}, {done} of {total} done, {flight} in flight{reason}\n")
}
