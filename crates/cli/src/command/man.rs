//! `convoy man`: writes man pages, from the descriptions that `--help` prints.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

/// Write the man pages of all commands to a directory
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory for the pages; created if it does not exist
    directory: PathBuf,
}

/// Writes a page for each of `programs` and one for each of their commands.
pub(crate) fn run(args: &Args, programs: Vec<clap::Command>) -> Result<ExitCode> {
    let Args { directory } = args;
    let attempt = || format!("could not write man pages to {}", directory.display());
    fs::create_dir_all(directory).with_context(attempt)?;
    for program in programs {
        clap_mangen::generate_to(program, directory).with_context(attempt)?;
    }
    Ok(ExitCode::SUCCESS)
}
