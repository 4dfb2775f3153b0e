//! `convoy plan`: what every rollout does next, and why nothing more does.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use convoy_plan::{DIALECTS, Plan};
use jiff::Timestamp;
use serde_json::Value;

use super::{DialectName, InputArgs};
use crate::finding::{self, Finding};
use crate::input::{self, Bag, Limits};
use crate::output::{self, Format};
use crate::{exit, text};

/// Shows what every rollout does next, and why nothing more does
///
/// Reads any bag of Kubernetes objects and decides, for every rollout object in it, what
/// would be written now, what waits and for what, and when to look again. Nothing is written
/// anywhere. Objects that are invalid are refused and take no part; the others are planned.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 every object is sound, 1 --check found a broken \
    guarantee, 2 an object was refused or input could not be read.")]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
    /// The instant to decide for, in RFC 3339; the clock's if left out
    #[arg(long, value_name = "TIME", env = "CONVOY_NOW", hide_env_values = true)]
    now: Option<Timestamp>,
    /// How to print the plan
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        env = "CONVOY_OUTPUT",
        hide_env_values = true
    )]
    output: Format,
    /// Plan only the rollouts of these dialects
    #[arg(
        long,
        value_name = "DIALECT",
        value_delimiter = ',',
        env = "CONVOY_DIALECT",
        hide_env_values = true
    )]
    dialect: Vec<DialectName>,
    /// Also hold the plan against the engine's guarantees, and tell which it breaks
    #[arg(long, env = "CONVOY_CHECK", hide_env_values = true)]
    check: bool,
}

#[derive(Debug)]
struct Settings {
    sources: Vec<PathBuf>,
    now: Timestamp,
    format: Format,
    /// The words of the dialects asked for; none means all.
    dialects: Vec<&'static str>,
    check: bool,
}

impl Args {
    fn resolve(self) -> Settings {
        let Self { input: InputArgs { filename }, now, output, dialect, check } = self;
        Settings {
            sources: filename,
            now: now.unwrap_or_else(this_second),
            format: output,
            dialects: dialect.into_iter().map(DialectName::word).collect(),
            check,
        }
    }
}

/// The clock's instant, in the whole seconds that Kubernetes' own times have.
fn this_second() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// All there is to tell about one run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) bag: Bag,
    pub(crate) plan: Plan,
    /// What is wrong with the input and the objects.
    pub(crate) findings: Vec<Finding>,
    /// The guarantees that the plan breaks; absent if they were not checked.
    pub(crate) broken: Option<Vec<convoy_check::Finding>>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let settings = args.resolve();
    let bag = input::read(&settings.sources, Limits::default());
    let mut plan = convoy_plan::plan(&bag.world, settings.now);
    let broken = settings.check.then(|| convoy_check::check(&bag.world, &plan));
    keep_dialects(&mut plan, &settings.dialects);
    let findings = finding::all(&bag, &plan.diagnostics);
    let report = Report { bag, plan, findings, broken };
    match settings.format {
        Format::Text => output::print(&text::plan(&report))?,
        format => {
            output::complain(&report.findings);
            output::print_value(&report.to_json(), format)?;
        }
    }
    Ok(report.exit_code())
}

/// Leaves out the steps of other dialects, and what is wrong with objects that only they read.
fn keep_dialects(plan: &mut Plan, wanted: &[&str]) {
    if wanted.is_empty() {
        return;
    }
    let kept = || DIALECTS.iter().filter(|dialect| wanted.contains(&dialect.name()));
    plan.steps.retain(|step| wanted.contains(&step.dialect));
    plan.diagnostics.retain(|found| kept().any(|dialect| dialect.validates(&found.key.kind)));
}

impl Report {
    /// The plan's own JSON, its diagnostics with their places and those of the input.
    fn to_json(&self) -> Value {
        let mut json = self.plan.to_json();
        json["diagnostics"] = finding::to_json(&self.findings);
        if let Some(broken) = &self.broken {
            json["check"] = serde_json::json!(broken);
        }
        json
    }

    fn exit_code(&self) -> ExitCode {
        if finding::has_errors(&self.findings) {
            ExitCode::from(exit::UNREADABLE)
        } else if self.broken.as_ref().is_some_and(|broken| !broken.is_empty()) {
            ExitCode::from(exit::FINDINGS)
        } else {
            ExitCode::SUCCESS
        }
    }
}
