//! `convoy validate`: what is wrong with objects, before anything acts on them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use convoy_plan::Severity;
use serde_json::json;

use super::InputArgs;
use crate::finding::{self, Finding};
use crate::input::{self, Limits};
use crate::output::{self, Format};
use crate::{exit, text};

/// Checks objects against their schemas and against each other
///
/// Every finding names the object, the field, the value at fault and what would be right,
/// with the file and line that the object was read from.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 fine (there may be warnings), 1 errors were found, \
    2 input could not be read.")]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
    /// How to print the findings
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        env = "CONVOY_OUTPUT",
        hide_env_values = true
    )]
    output: Format,
}

#[derive(Debug)]
struct Settings {
    sources: Vec<PathBuf>,
    format: Format,
}

impl Args {
    fn resolve(self) -> Settings {
        let Self { input: InputArgs { filename }, output } = self;
        Settings { sources: filename, format: output }
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let settings = args.resolve();
    let bag = input::read(&settings.sources, Limits::default());
    let findings = finding::all(&bag, &convoy_plan::validate(&bag.world));
    match settings.format {
        Format::Text => output::print(&text::validation(bag.world.len(), &findings))?,
        format => output::print_value(&to_json(bag.world.len(), &findings), format)?,
    }
    Ok(if !bag.is_sound() {
        ExitCode::from(exit::UNREADABLE)
    } else if finding::has_errors(&findings) {
        ExitCode::from(exit::FINDINGS)
    } else {
        ExitCode::SUCCESS
    })
}

fn to_json(objects: usize, findings: &[Finding]) -> serde_json::Value {
    json!({
        "objects": objects,
        "errors": finding::count(findings, Severity::Error),
        "warnings": finding::count(findings, Severity::Warning),
        "findings": finding::to_json(findings),
    })
}
