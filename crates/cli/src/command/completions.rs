//! `convoy completions`: the script with which a shell completes the command line.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::output;

/// Prints the completion script of a shell
///
/// For bash: source <(convoy completions bash)
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell to complete in
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<ExitCode> {
    let Args { shell } = *args;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "convoy", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
