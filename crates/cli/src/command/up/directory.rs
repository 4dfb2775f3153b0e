//! Where a server keeps its files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::process::temporary_directory;

/// The directory of a server's own files, which exist also if its objects are in memory.
pub(super) enum OwnDirectory {
    /// The data directory; it stays.
    Data(PathBuf),
    /// A temporary one; it goes when the server ends.
    Temporary(TempDir),
}

impl OwnDirectory {
    pub(super) fn of(data_directory: Option<&Path>) -> Result<Self> {
        let Some(given) = data_directory else {
            return Ok(Self::Temporary(temporary_directory("convoy-")?));
        };
        // What is printed is used from other directories.
        let path = std::path::absolute(given);
        let path = path.with_context(|| format!("invalid data directory {}", given.display()))?;
        Ok(Self::Data(path))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Data(path) => path,
            Self::Temporary(temporary) => temporary.path(),
        }
    }

    /// Removes what is not kept.
    pub(super) fn end(self) -> Result<()> {
        match self {
            Self::Data(_) => Ok(()),
            Self::Temporary(temporary) => {
                temporary.close().context("could not remove the temporary directory")
            }
        }
    }
}

/// The data directory; none with `--ephemeral`.
pub(super) fn data_directory(ephemeral: bool, given: Option<PathBuf>) -> Result<Option<PathBuf>> {
    match (ephemeral, given) {
        (true, _) => Ok(None),
        (false, Some(directory)) => Ok(Some(directory)),
        (false, None) => default_directory().map(Some),
    }
}

/// The data directory without `--data-dir`.
pub(crate) fn default_directory() -> Result<PathBuf> {
    let from_home =
        || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let base =
        std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    match base.or_else(from_home) {
        Some(base) => Ok(base.join("convoy")),
        None => bail!("HOME and XDG_DATA_HOME are not set; pass --data-dir or --ephemeral"),
    }
}
