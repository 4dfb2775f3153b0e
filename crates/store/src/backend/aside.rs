//! Keeps damaged files: whoever accepts a loss can still have them examined.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::journal::Flaw;

const PREFIX: &str = "damaged-";

/// Moves a file or directory into a new directory `damaged-N` beside the engine; where it is now.
pub(super) fn put_aside(directory: &Path, path: &Path) -> io::Result<PathBuf> {
    let place = new_place(directory)?.join(path.file_name().unwrap_or_default());
    fs::rename(path, &place)?;
    File::open(directory)?.sync_all()?;
    Ok(place)
}

/// Leaves of the logs what leads up to a flaw, and keeps copies of the rest.
pub(super) fn cut_at(directory: &Path, flaw: &Flaw) -> io::Result<()> {
    if flaw.log.is_none() && flaw.later.is_empty() {
        return Ok(());
    }
    let place = new_place(directory)?;
    if let Some((log, end)) = &flaw.log {
        fs::copy(log, place.join(log.file_name().unwrap_or_default()))?;
        cut(log, *end)?;
    }
    // From the newest on: a crash in between leaves no gap.
    for log in flaw.later.iter().rev() {
        fs::rename(log, place.join(log.file_name().unwrap_or_default()))?;
    }
    tracing::warn!(directory = %place.display(), "the damaged log files are kept");
    Ok(())
}

/// Cuts a log off, durably.
pub(super) fn cut(log: &Path, end: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(log)?;
    file.set_len(end)?;
    file.sync_all()
}

fn new_place(directory: &Path) -> io::Result<PathBuf> {
    for number in 1_u32.. {
        let place = directory.join(format!("{PREFIX}{number}"));
        match fs::DirBuilder::new().mode(0o700).create(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| place),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
