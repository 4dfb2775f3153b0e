//! `convoy plan`: previews the next step of every rollout and what blocks it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
#[cfg(feature = "server")]
use convoy_sim::forecast::Until;
use jiff::Timestamp;

use super::DialectName;
#[cfg(feature = "server")]
use super::simulate;
use crate::clock::this_second;
#[cfg(feature = "server")]
use crate::cluster::ClusterArgs;
use crate::input::{self, Limits};
use crate::output::{self, Format};
use crate::report::Report;
#[cfg(feature = "server")]
use crate::rollouts;
use crate::{exit, finding, text};

/// Preview the next step of every rollout and what blocks it
///
/// Reads Kubernetes objects from files, or without -f from the cluster of the current context, and
/// prints, for every rollout object among them, the writes that a controller would make now, the
/// members that wait and why, and the time of the next check. Changes nothing; with -f, works
/// offline. Invalid objects are reported and left out; rollouts that depend on one are held.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 success, 1 --check found a violated guarantee, 2 an \
    object is invalid or input could not be read.")]
pub struct Args {
    /// Objects to read: a file, a directory (all *.yaml, *.yml and *.json files below it), a
    /// glob, or - for standard input. Can be repeated
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "PATH",
        required = cfg!(not(feature = "server"))
    )]
    filename: Vec<PathBuf>,
    /// Time of the decision, in RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", env = "CONVOY_NOW", hide_env_values = true)]
    now: Option<Timestamp>,
    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        env = "CONVOY_OUTPUT",
        hide_env_values = true
    )]
    output: Format,
    /// Plan only rollouts of these dialects
    #[arg(
        long,
        value_name = "DIALECT",
        value_delimiter = ',',
        env = "CONVOY_DIALECT",
        hide_env_values = true
    )]
    dialect: Vec<DialectName>,
    /// Verify the plan against Convoy's guarantees and report violations
    #[arg(long, env = "CONVOY_CHECK", hide_env_values = true)]
    check: bool,
    /// Simulate the rollouts instead: until `done`, or for a duration such as 90m. Short for
    /// `convoy simulate`, which has more to say and more flags
    #[cfg(feature = "server")]
    #[arg(long, value_name = "done|DURATION", value_parser = simulate::until)]
    until: Option<Until>,
    #[cfg(feature = "server")]
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug)]
struct Settings {
    sources: Vec<PathBuf>,
    #[cfg(feature = "server")]
    until: Option<Until>,
    #[cfg(feature = "server")]
    cluster: ClusterArgs,
    now: Timestamp,
    format: Format,
    /// Names of the selected dialects; empty means all.
    dialects: Vec<&'static str>,
    check: bool,
}

impl Args {
    fn resolve(self) -> Settings {
        let Self {
            filename,
            now,
            output,
            dialect,
            check,
            #[cfg(feature = "server")]
            until,
            #[cfg(feature = "server")]
            cluster,
        } = self;
        Settings {
            sources: filename,
            #[cfg(feature = "server")]
            until,
            #[cfg(feature = "server")]
            cluster,
            now: now.unwrap_or_else(this_second),
            format: output,
            dialects: dialect.into_iter().map(DialectName::word).collect(),
            check,
        }
    }
}

fn report(settings: Settings) -> Result<Report> {
    #[cfg(feature = "server")]
    if settings.sources.is_empty() {
        return of_cluster(settings);
    }
    let manifests = input::read(&settings.sources, Limits::default());
    Ok(Report::new(manifests, settings.now, &settings.dialects, settings.check))
}

/// The rollouts of the cluster of the current context, in the namespace that is asked for.
#[cfg(feature = "server")]
fn of_cluster(settings: Settings) -> Result<Report> {
    let cluster = settings.cluster.connect()?;
    let live = cluster.read(&settings.dialects)?;
    let mut report = rollouts::report(live, settings.now, &settings.dialects, settings.check);
    let namespace = cluster.namespace.as_deref();
    report.plan.steps.retain(|step| rollouts::is_within(&step.rollout, namespace));
    Ok(report)
}

/// What becomes of the rollouts of a report.
#[cfg(feature = "server")]
fn forecast(report: &Report, until: Until, format: Format) -> Result<ExitCode> {
    let scenario = convoy_sim::scenario::Scenario::default();
    let (seeds, start) = (simulate::SEEDS, report.plan.now);
    let settings = simulate::Settings { scenario, seeds, until, start };
    let nothing = convoy_plan::World::new();
    let (_, outlook) = settings.outlook(&report.manifests.world, &nothing)?;
    match format {
        Format::Text => output::print(&text::forecast::summary(&outlook))?,
        format => output::print_value(&outlook.to_json(), format)?,
    }
    Ok(settings.status(&outlook))
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let settings = args.resolve();
    let format = settings.format;
    #[cfg(feature = "server")]
    let until = settings.until;
    let report = report(settings)?;
    #[cfg(feature = "server")]
    if let Some(until) = until.filter(|_| !finding::has_errors(&report.findings)) {
        return forecast(&report, until, format);
    }
    match format {
        Format::Text => output::print(&text::plan(&report))?,
        format => {
            output::print_errors(&report.findings);
            output::print_value(&report.to_json(), format)?;
        }
    }
    Ok(if finding::has_errors(&report.findings) {
        ExitCode::from(exit::UNREADABLE)
    } else if report.violations.is_some_and(|violations| !violations.is_empty()) {
        ExitCode::from(exit::FINDINGS)
    } else {
        ExitCode::SUCCESS
    })
}
