//! The file by which `convoy down` finds the server of a directory.
//!
//! The server holds a lock on it while it runs. A number that was left behind, and that another
//! process may have by now, is therefore never sent a signal.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const NAME: &str = "convoy.pid";

/// The process file of the server that runs here; removed when it ends.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    path: PathBuf,
    _locked: File,
}

impl ProcessFile {
    pub(super) fn hold(directory: &Path) -> Result<Self> {
        let path = directory.join(NAME);
        let failed = || format!("could not write the process file {}", path.display());
        let mut file = open(&path, true).with_context(failed)?;
        if !is_free(&file).with_context(failed)? {
            bail!("another server holds the process file {}", path.display());
        }
        file.set_len(0).with_context(failed)?;
        writeln!(file, "{}", std::process::id()).with_context(failed)?;
        Ok(Self { path, _locked: file })
    }
}

impl Drop for ProcessFile {
    fn drop(&mut self) {
        // A file that stays is not locked, which says as much.
        _ = std::fs::remove_file(&self.path);
    }
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) process: i32,
    file: File,
}

impl RunningServer {
    /// The server of a directory, if one runs.
    pub(crate) fn find(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(NAME);
        let failed = || format!("could not read the process file {}", path.display());
        let mut file = match open(&path, false) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.with_context(failed)?,
        };
        if is_free(&file).with_context(failed)? {
            return Ok(None);
        }
        let mut text = String::new();
        file.rewind().and_then(|()| file.read_to_string(&mut text)).with_context(failed)?;
        let process = text.trim().parse().with_context(|| {
            format!("the process file {} has no process number: {text:?}", path.display())
        })?;
        Ok(Some(Self { process, file }))
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> Result<bool> {
        is_free(&self.file).context("could not see whether the server has ended")
    }
}

fn open(path: &Path, creates: bool) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(creates).truncate(false).open(path)
}

/// Takes the lock, unless another process has it.
fn is_free(file: &File) -> std::io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_runs_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let find = || RunningServer::find(directory.path()).expect("it can be read");
        assert!(find().is_none());
        let held = ProcessFile::hold(directory.path()).expect("nobody holds it");
        let found = find().expect("it is held");
        assert_eq!(found.process.unsigned_abs(), std::process::id());
        assert!(!found.has_ended().expect("it can be seen"));
        assert!(ProcessFile::hold(directory.path()).is_err());
        drop(held);
        assert!(found.has_ended().expect("it can be seen"));
        std::fs::write(directory.path().join(NAME), "1\n").expect("it can be written");
        assert!(find().is_none(), "left behind by a server that was killed");
    }
}
