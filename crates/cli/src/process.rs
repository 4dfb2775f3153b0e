//! What the process asks of the system: files for its owner alone, as many of them as it may have,
//! a place for those that go with it, and its own program.

use std::path::PathBuf;

use anyhow::{Context, Result};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use tempfile::TempDir;

/// Keeps everything that the process creates from everybody but its owner, whatever the umask was.
pub(crate) fn keep_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Raises the limit of open files to the highest allowed. The usual limit of 1,024 is kept low for
/// programs that use `select`; connections alone exceed it.
pub(crate) fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(current, maximum, error, "could not raise the limit of open files");
    }
}

/// A directory that is removed with its owner. Images have no place for one if their root is
/// read-only, so the error says how to name another.
pub(crate) fn temporary_directory(prefix: &str) -> Result<TempDir> {
    let directory = tempfile::Builder::new().prefix(prefix).tempdir();
    directory.with_context(|| {
        let place = std::env::temp_dir();
        format!(
            "could not create a temporary directory in {}; set TMPDIR to a directory that can be \
             written to",
            place.display()
        )
    })
}

/// The path of this program, to start it again.
pub(crate) fn own_program() -> Result<PathBuf> {
    std::env::current_exe().context("could not find this program; is /proc mounted?")
}
