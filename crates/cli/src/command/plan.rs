//! `convoy plan`: what every rollout does next, and why nothing more does.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use jiff::Timestamp;

use super::{DialectName, InputArgs};
use crate::input::{self, Limits};
use crate::output::{self, Format};
use crate::report::Report;
use crate::{exit, finding};

/// Shows what every rollout does next, and why nothing more does
///
/// Reads any bag of Kubernetes objects and decides, for every rollout object in it, what
/// would be written now, what waits and for what, and when to look again. Nothing is written
/// anywhere. Objects that are invalid are refused and take no part; rollouts that hang on one
/// are held, the others are planned.
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

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let settings = args.resolve();
    let bag = input::read(&settings.sources, Limits::default());
    let report = Report::new(bag, settings.now, &settings.dialects, settings.check);
    match settings.format {
        Format::Text => output::print(&report.to_text())?,
        format => {
            output::complain(&report.findings);
            output::print_value(&report.to_json(), format)?;
        }
    }
    Ok(if finding::has_errors(&report.findings) {
        ExitCode::from(exit::UNREADABLE)
    } else if report.broken.is_some_and(|broken| !broken.is_empty()) {
        ExitCode::from(exit::FINDINGS)
    } else {
        ExitCode::SUCCESS
    })
}
