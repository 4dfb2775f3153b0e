//! `convoy validate`: checks objects offline.

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

/// Validate objects against their schemas and against each other
///
/// Every finding names the file and line, the object, the field, the invalid value and what is
/// valid instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 no errors (warnings are possible), 1 errors found, \
    2 input could not be read.")]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
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
    let manifests = input::read(&settings.sources, Limits::default());
    let findings = finding::all(&manifests, &convoy_plan::validate(&manifests.world));
    match settings.format {
        Format::Text => output::print(&text::validation(manifests.world.len(), &findings))?,
        format => output::print_value(&to_json(manifests.world.len(), &findings), format)?,
    }
    Ok(if !manifests.is_sound() {
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
