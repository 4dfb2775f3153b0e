//! `convoy simulate`: the course of rollouts in virtual time, before anybody carries them out.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use convoy_api::text::GoDuration;
use convoy_plan::World;
use convoy_sim::forecast::{Outlook, Premise, Until};
use convoy_sim::scenario::Scenario;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::fleet::Simulation;
use super::progress;
use crate::clock::this_second;
use crate::input::{self, Limits};
use crate::output::{self, Format};
use crate::text::forecast as text;
use crate::{exit, finding, waves};

/// Enough for a range, and quick.
pub(crate) const SEEDS: u32 = 5;

/// Simulate rollouts to their end: timeline, duration, unavailability, and what gets stuck
///
/// Runs the real controllers in virtual time over the given objects: manifests, or the objects of a
/// cluster from `convoy record` or `kubectl get -o yaml`. Nodes are simulated, as the scenario says.
/// Changes nothing and needs no cluster.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 every rollout finished (or, with --until DURATION, the time \
    is up), 1 a rollout did not finish, 2 input could not be read or simulated."
)]
pub struct Args {
    /// Objects to begin with: a file, a directory (all *.yaml, *.yml and *.json files below it), a
    /// glob, or - for standard input. Can be repeated
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true)]
    filename: Vec<PathBuf>,
    /// Objects to apply at the start, as `kubectl apply` would. Can be repeated
    #[arg(long, value_name = "PATH")]
    apply: Vec<PathBuf>,
    /// Compare with a second simulation in which these objects are applied as well. Can be repeated
    #[arg(long, value_name = "PATH")]
    diff: Vec<PathBuf>,
    #[command(flatten)]
    simulation: Simulation,
    /// Number of simulations, each with the next seed
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: u32,
    /// End of the simulation: `done`, or a duration such as 90m
    #[arg(long, value_name = "done|DURATION", default_value = "done", value_parser = until)]
    until: Until,
    /// Start of simulated time, in RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", env = "CONVOY_NOW", hide_env_values = true)]
    now: Option<Timestamp>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: SimulationFormat,
}

/// Output format of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SimulationFormat {
    /// For people
    Text,
    /// For programs; the format is stable
    Json,
    /// Same content as JSON, in YAML
    Yaml,
    /// A picture of the groups over time, of the first seed
    Svg,
}

/// What is simulated, and how.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) scenario: Scenario,
    pub(crate) seeds: u32,
    pub(crate) until: Until,
    pub(crate) start: Timestamp,
}

/// `done`, or a duration.
pub(crate) fn until(text: &str) -> Result<Until, String> {
    if text == "done" {
        return Ok(Until::Done);
    }
    let nanos =
        text.parse::<GoDuration>().map(GoDuration::as_nanos).ok().filter(|nanos| *nanos > 0);
    let wanted = || format!("{text:?}: want `done`, or a duration such as 90m");
    nanos.map(|nanos| Until::After(SignedDuration::from_nanos(nanos))).ok_or_else(wanted)
}

impl Settings {
    /// The simulations of objects, after others were applied to them.
    pub(crate) fn outlook(&self, given: &World, applied: &World) -> Result<(Premise, Outlook)> {
        let premise = Premise::new(given, applied, self.scenario.clone(), self.start)?;
        let (first, seeds) = (self.scenario.seed, self.seeds);
        let outlook = progress::shown(seeds, |played| {
            Outlook::counted(&premise, first, seeds, self.until, played)
        })?;
        Ok((premise, outlook))
    }

    /// The exit status that a result has.
    pub(crate) fn status(&self, outlook: &Outlook) -> ExitCode {
        let is_unfinished =
            outlook.courses.iter().any(|course| course.unfinished().next().is_some());
        match self.until {
            Until::Done if is_unfinished => ExitCode::from(exit::FINDINGS),
            Until::Done | Until::After(_) => ExitCode::SUCCESS,
        }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { filename, apply, diff, simulation, seeds, until, now, output: format } = args;
    let scenario = simulation.scenario_or_default()?;
    let start = now.unwrap_or_else(this_second);
    let settings = Settings { scenario, seeds, until, start };
    let given = read(&filename)?;
    let applied = read(&apply)?;
    let (premise, outlook) = settings.outlook(&given, &applied)?;
    if diff.is_empty() {
        match format {
            SimulationFormat::Text => output::print(&text::outlook(&premise, &outlook))?,
            SimulationFormat::Svg => output::print(&waves::svg(&outlook))?,
            SimulationFormat::Json => output::print_value(&outlook.to_json(), Format::Json)?,
            SimulationFormat::Yaml => output::print_value(&outlook.to_json(), Format::Yaml)?,
        }
        return Ok(settings.status(&outlook));
    }
    let mut others = applied;
    for object in read(&diff)?.iter() {
        others.insert(object.clone());
    }
    let (_, other) = settings.outlook(&given, &others)?;
    let both = || -> Value { json!({"base": outlook.to_json(), "other": other.to_json()}) };
    match format {
        SimulationFormat::Text => output::print(&text::comparison(&outlook, &other))?,
        SimulationFormat::Json => output::print_value(&both(), Format::Json)?,
        SimulationFormat::Yaml => output::print_value(&both(), Format::Yaml)?,
        SimulationFormat::Svg => bail!("--diff has no picture; use -o text or -o json"),
    }
    Ok(settings.status(&other))
}

/// The objects of files; an unreadable one is an error.
fn read(files: &[PathBuf]) -> Result<World> {
    if files.is_empty() {
        return Ok(World::new());
    }
    let manifests = input::read(files, Limits::default());
    let findings = finding::all(&manifests, &[]);
    output::print_errors(&findings);
    if !manifests.is_sound() {
        bail!("the input could not be read");
    }
    Some(manifests.world).filter(|world| !world.is_empty()).context("no objects found")
}
