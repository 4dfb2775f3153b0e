//! The storage engine with its three keyspaces, and what its errors mean.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use rustix::io::Errno;

use super::mark::{MARK, Mark};
use super::{BackendError, file_error};

/// Small on purpose: reads are served from memory, the engine is read at start only.
const CACHE_BYTES: u64 = 4 << 20;
const MEMTABLE_BYTES: u64 = 4 << 20;

/// What a start reads again at most, besides what is stored for good.
const JOURNAL_BYTES: u64 = 64 << 20;

/// The engine's own catalogue and the three keyspaces below, by the numbers it gives them.
const KEYSPACES: [&str; 4] = ["0", "1", "2", "3"];

/// The file that names a keyspace's tables. Without it the engine deletes the keyspace.
const CURRENT: &str = "current";

pub(super) struct Engine {
    pub(super) database: Database,
    pub(super) live: Keyspace,
    pub(super) history: Keyspace,
    pub(super) meta: Keyspace,
    path: PathBuf,
}

impl Engine {
    /// Opens, or makes, the engine in `path`.
    pub(super) fn open(path: &Path) -> Result<Self, BackendError> {
        let opening = || {
            let builder = Database::builder(path).cache_size(CACHE_BYTES);
            builder.max_journaling_size(JOURNAL_BYTES).worker_threads(1).open()
        };
        // The engine gives up on some logs that make no sense, instead of saying so.
        let opened = catch_unwind(AssertUnwindSafe(opening)).map_err(|_| {
            let what = "its log makes no sense".to_owned();
            BackendError::Damaged { path: path.display().to_string(), what }
        })?;
        let failed = |error| engine_error(path, "open the data in", error);
        let database = opened.map_err(failed)?;
        let keyspace = |name: &str| {
            let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
            database.keyspace(name, options).map_err(failed)
        };
        let (live, history, meta) = (keyspace("live")?, keyspace("history")?, keyspace("meta")?);
        Ok(Self { database, live, history, meta, path: path.to_owned() })
    }

    /// The mark of the newest commit; none where there was none, or none that left a mark.
    pub(super) fn mark(&self) -> Result<Option<Mark>, BackendError> {
        let found = self.meta.get(MARK).map_err(self.failed("read"))?;
        let Some(bytes) = found else { return Ok(None) };
        let mark = Mark::decode(&bytes);
        mark.map(Some).ok_or_else(|| self.damaged("its newest mark cannot be read".to_owned()))
    }

    pub(super) fn failed(
        &self,
        attempt: &'static str,
    ) -> impl Fn(fjall::Error) -> BackendError + use<> {
        let path = self.path.clone();
        move |error| engine_error(&path, attempt, error)
    }

    pub(super) fn damaged(&self, what: String) -> BackendError {
        BackendError::Damaged { path: self.path.display().to_string(), what }
    }
}

/// A part of the engine in `path` that is not there: opening it would replace it with an empty one.
pub(super) fn missing_part(path: &Path) -> Option<PathBuf> {
    let parts = KEYSPACES.iter().map(|name| path.join("keyspaces").join(name).join(CURRENT));
    parts.chain([path.join("version")]).find(|part| !part.exists())
}

/// Why a write to the engine failed. Errors that pass, such as a full disk, are told apart from
/// those that do not.
pub(super) fn write_error(path: &Path, attempt: &'static str, error: fjall::Error) -> BackendError {
    let shown = path.display().to_string();
    match engine_error(path, attempt, error) {
        BackendError::Io { source, .. } if passes(&source) => {
            BackendError::Unavailable { attempt, path: shown, source }
        }
        // The engine refuses everything after an error in one of its threads, and keeps the error
        // to itself. What stopped the thread stops a file of ours as well.
        BackendError::Engine { source, .. } if is_poisoned(&*source) => {
            let source = probe(path).err().unwrap_or_else(|| {
                io::Error::other("the storage engine stopped after an error in the background")
            });
            BackendError::Unavailable { attempt, path: shown, source: Arc::new(source) }
        }
        other => other,
    }
}

/// Writes a file beside the engine, to see whether that is possible.
pub(super) fn probe(path: &Path) -> io::Result<()> {
    let file = path.with_extension("probe");
    let tried = File::create(&file).and_then(|mut file| {
        file.write_all(&[1; 16 << 10])?;
        file.sync_data()
    });
    let removed = fs::remove_file(&file);
    tried.and(removed)
}

/// Whether an error ends once space, quota, file descriptors or memory are free again.
fn passes(error: &io::Error) -> bool {
    let passing = [Errno::NOMEM, Errno::NFILE, Errno::MFILE];
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        || Errno::from_io_error(error).is_some_and(|number| passing.contains(&number))
}

fn is_poisoned(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(fjall::Error::Poisoned))
}

pub(super) fn engine_error(
    path: &Path,
    attempt: &'static str,
    error: fjall::Error,
) -> BackendError {
    let shown = path.display().to_string();
    match error {
        fjall::Error::Locked => BackendError::InUse { path: shown },
        fjall::Error::Io(source) => file_error(attempt, path)(source),
        error @ (fjall::Error::JournalRecovery(_)
        | fjall::Error::InvalidVersion(_)
        | fjall::Error::InvalidTrailer
        | fjall::Error::InvalidTag(_)
        | fjall::Error::Unrecoverable
        | fjall::Error::Decompress(_)) => {
            BackendError::Damaged { path: shown, what: error.to_string() }
        }
        error => match (io_cause(&error), &error) {
            (Some(source), _) => file_error(attempt, path)(source),
            (None, fjall::Error::Storage(what)) => {
                BackendError::Damaged { path: shown, what: what.to_string() }
            }
            (None, _) => BackendError::Engine { attempt, source: Arc::new(error) },
        },
    }
}

/// The error of the system below an error of the engine.
fn io_cause(error: &fjall::Error) -> Option<io::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            let same = found.raw_os_error().map(io::Error::from_raw_os_error);
            return Some(same.unwrap_or_else(|| io::Error::new(found.kind(), found.to_string())));
        }
        cause = error.source();
    }
    None
}
