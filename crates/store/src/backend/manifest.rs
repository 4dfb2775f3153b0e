//! The manifest: what a start has to find. A file beside the engine says up to which revision
//! everything was durable when it was last written, sealed by a checksum.
//!
//! It has two lines of fixed length, written in turn, so that a torn write leaves the other one.
//! The file stays open and keeps its size: writing it takes neither a file descriptor nor space.
//! Its lock keeps other processes out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use crate::entry::Revision;

pub(super) const MANIFEST_FILE: &str = "MANIFEST";

const LINE_BYTES: usize = 256;
const LINES: u64 = 2;

/// A process that is being killed keeps its lock for a moment.
const LOCK_ATTEMPTS: usize = 4;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Manifest {
    file: File,
    path: PathBuf,
    /// Counts the writes: the line with the higher number is the newer one.
    serial: u64,
    seal: Seal,
}

/// What was durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seal {
    pub(super) revision: Revision,
    /// Objects that were live at this revision.
    pub(super) objects: u64,
    /// The number of the newest log file.
    pub(super) log: u64,
    /// Whether every commit is synced before the next one is written.
    pub(super) is_synced: bool,
}

/// A manifest as found.
#[derive(Debug)]
pub(super) enum Found {
    Whole(Manifest),
    /// There is none, or none that can be read. This one is empty, and not written yet.
    Unknown {
        manifest: Manifest,
        exists: bool,
    },
    /// Another process has it open.
    InUse,
}

impl Manifest {
    /// Opens and locks the manifest of a directory.
    pub(super) fn open(directory: &Path) -> io::Result<Found> {
        let path = directory.join(MANIFEST_FILE);
        let exists = path.try_exists()?;
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        if !lock(&file)? {
            return Ok(Found::InUse);
        }
        let lines = (0..LINES).filter_map(|line| {
            let mut bytes = [0; LINE_BYTES];
            file.read_exact_at(&mut bytes, line * LINE_BYTES as u64).ok()?;
            decode(&bytes)
        });
        let newest = lines.max_by_key(|(serial, _)| *serial);
        let is_whole = newest.is_some();
        let (serial, seal) = newest.unwrap_or_default();
        let manifest = Self { file, path, serial, seal };
        Ok(if is_whole { Found::Whole(manifest) } else { Found::Unknown { manifest, exists } })
    }

    pub(super) fn seal(&self) -> Seal {
        self.seal
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is durable now, durably.
    pub(super) fn write(&mut self, seal: Seal) -> io::Result<()> {
        let is_first = self.serial == 0;
        loop {
            self.serial += 1;
            let place = self.serial % LINES * LINE_BYTES as u64;
            self.file.write_all_at(&encode(self.serial, &seal), place)?;
            // The first time both, so that the file has its size.
            if !is_first || self.serial >= LINES {
                break;
            }
        }
        self.file.sync_data()?;
        if is_first && let Some(directory) = self.path.parent() {
            File::open(directory)?.sync_all()?;
        }
        self.seal = seal;
        Ok(())
    }
}

/// Whether the lock was free.
fn lock(file: &File) -> io::Result<bool> {
    for attempt in 1..=LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {}
        }
    }
    Ok(false)
}

fn encode(serial: u64, seal: &Seal) -> [u8; LINE_BYTES] {
    let Seal { revision, objects, log, is_synced } = seal;
    let mut text = format!("{serial} revision {revision} objects {objects} log {log} ");
    text.push_str(if *is_synced { "synced" } else { "relaxed" });
    let text = format!("{text} check {:016x}", xxh3_64(text.as_bytes()));
    let mut line = [b' '; LINE_BYTES];
    line[..text.len()].copy_from_slice(text.as_bytes());
    line[LINE_BYTES - 1] = b'\n';
    line
}

fn decode(line: &[u8]) -> Option<(u64, Seal)> {
    let (text, check) = std::str::from_utf8(line).ok()?.trim_end().split_once(" check ")?;
    if u64::from_str_radix(check, 16).ok()? != xxh3_64(text.as_bytes()) {
        return None;
    }
    let words: Vec<&str> = text.split(' ').collect();
    let [serial, "revision", revision, "objects", objects, "log", log, mode] = words[..] else {
        return None;
    };
    let seal = Seal {
        revision: Revision(revision.parse().ok()?),
        objects: objects.parse().ok()?,
        log: log.parse().ok()?,
        is_synced: mode == "synced",
    };
    Some((serial.parse().ok()?, seal))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn reopened(directory: &Path) -> Option<Seal> {
        match Manifest::open(directory).expect("it opens") {
            Found::Whole(manifest) => Some(manifest.seal()),
            Found::Unknown { .. } | Found::InUse => None,
        }
    }

    #[test]
    fn the_newest_whole_line_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let Found::Unknown { mut manifest, exists: false } =
            Manifest::open(directory.path()).expect("it opens")
        else {
            panic!("there is none yet");
        };
        let seal = |revision| Seal {
            revision: Revision(revision),
            objects: 2,
            log: u64::MAX,
            is_synced: true,
        };
        for revision in [0, 7, u64::MAX] {
            manifest.write(seal(revision)).expect("it is written");
        }
        assert!(matches!(Manifest::open(directory.path()), Ok(Found::InUse)));
        drop(manifest);
        assert_eq!(reopened(directory.path()), Some(seal(u64::MAX)));
        let path = directory.path().join(MANIFEST_FILE);
        let mut bytes = fs::read(&path).expect("readable");
        let newest = if bytes[0] == b'4' { 0 } else { LINE_BYTES };
        bytes[newest + 4] ^= 1;
        fs::write(&path, &bytes).expect("writable");
        assert_eq!(reopened(directory.path()), Some(seal(7)), "the line before");
        fs::write(&path, vec![0; 2 * LINE_BYTES]).expect("writable");
        assert_eq!(reopened(directory.path()), None);
    }
}
