//! `convoy down`: ends the server of `convoy up`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::hub::duration;
use super::up::default_directory;
use super::up::process_file::RunningServer;
use crate::output;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Stop the server that `convoy up` runs in a data directory
///
/// Objects stay, and `convoy up` serves them again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Data directory of the server [default: ~/.local/share/convoy]
    #[arg(long, value_name = "DIR", env = "CONVOY_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// How long to wait until the server has ended
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = duration)]
    timeout: Duration,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { data_dir, timeout } = args;
    let directory = data_dir.map_or_else(default_directory, Ok)?;
    ensure!(directory.is_dir(), "there is no data directory {}", directory.display());
    let text = match RunningServer::find(&directory)? {
        None => format!("no server runs in {}\n", directory.display()),
        Some(server) => {
            stop(&server, &directory, timeout)?;
            format!("stopped the server in {} (process {})\n", directory.display(), server.process)
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn stop(server: &RunningServer, directory: &Path, timeout: Duration) -> Result<()> {
    let process = Pid::from_raw(server.process).filter(|_| server.process > 1);
    let process = process.with_context(|| format!("{} is not a process", server.process))?;
    let sent = kill_process(process, Signal::TERM);
    sent.with_context(|| format!("could not signal process {}", server.process))?;
    let begun = Instant::now();
    while !server.has_ended()? {
        if begun.elapsed() > timeout {
            bail!(
                "the server in {} (process {}) has not ended after {timeout:?}; \
                 it may be waiting for requests in progress: run `convoy down` again to stop it \
                 immediately",
                directory.display(),
                server.process
            );
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
