//! `convoy up --detach`: the server in the background.
//!
//! The same program is started again with the same flags. Until it serves, it shares the terminal:
//! its errors are seen, and Ctrl-C ends both. Then it prints where it serves, leaves the terminal
//! and writes to a log file.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::output;
use crate::process::own_program;

/// The flag of the started program in place of `--detach`.
pub(super) const BACKGROUND: &str = "--in-background";

/// Whether the server runs in the background, and what it waits for before it says that it is ready.
#[derive(Debug, clap::Args)]
pub(super) struct BackgroundFlags {
    /// Run in the background: return as soon as the server is ready; `convoy down` stops it
    #[arg(long)]
    pub(super) detach: bool,
    /// Wait until all simulated nodes and member clusters are ready before the server says that it
    /// is, for scripts
    #[arg(long)]
    pub(super) wait: bool,
    /// Started by `--detach`.
    #[arg(long, hide = true)]
    pub(super) in_background: bool,
}

const LOG: &str = "convoy.log";

/// Starts the server, and returns once it serves or has failed.
pub(super) fn start() -> Result<ExitCode> {
    let mut child = Command::new(own_program()?)
        .args(arguments(std::env::args_os().skip(1)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("could not start the server")?;
    let mut announced = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        // It ends when the server leaves the terminal, or when it has failed.
        std::io::Read::read_to_string(&mut stdout, &mut announced)
            .context("could not read what the server prints")?;
    }
    if !announced.is_empty() {
        output::print(&announced)?;
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().context("could not wait for the server")?;
    if let Some(signal) = status.signal() {
        eprintln!("error: the server was ended by signal {signal} before it was ready");
    }
    // Its own error is on the terminal already.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The same arguments for the program that stays.
fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    given.map(|one| if one == "--detach" { BACKGROUND.into() } else { one }).collect()
}

/// Leaves the terminal: what is written from now on goes to a log file in the directory.
pub(super) fn leave_terminal(directory: &Path) -> Result<()> {
    let path = directory.join(LOG);
    let log = OpenOptions::new().create(true).append(true).open(&path);
    let log = log.with_context(|| format!("could not open the log file {}", path.display()))?;
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null");
    let nothing = nothing.context("could not open /dev/null")?;
    let failed = "could not leave the terminal";
    setsid().context(failed)?;
    dup2_stdin(&nothing).context(failed)?;
    dup2_stderr(&log).context(failed)?;
    // Last: whoever started this waits for it.
    dup2_stdout(&nothing).context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_flag_itself_is_replaced() {
        let given = ["up", "--detach", "--context", "detach"].map(OsString::from);
        let expected = ["up", BACKGROUND, "--context", "detach"].map(OsString::from);
        assert_eq!(arguments(given.into_iter()), expected);
    }
}
