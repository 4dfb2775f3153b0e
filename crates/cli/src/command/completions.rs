//! `convoy completions`: prints shell completion scripts.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::output;

/// Print the completion script for a shell
///
/// For bash: source <(convoy completions bash)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell to print the script for
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<ExitCode> {
    let Args { shell } = *args;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "convoy", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
