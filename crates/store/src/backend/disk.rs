//! The durable backend: an embedded LSM engine with an atomic, synced journal below.
//!
//! Three keyspaces: `live` (key to newest version), `history` (revision to event), `meta`
//! (current revision, compaction). Each commit is one atomic batch over all three. The engine's
//! caches are kept small: what is live is in memory above.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::record::{decode_live, decode_record, encode_live, encode_record, number};
use super::sound::flaw;
use super::{Backend, BackendError, Loaded, Record};
use crate::entry::{Change, Revision};

/// When a write counts as safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It would survive power loss. The default.
    #[default]
    Sync,
    /// It would survive the process; power loss may take what came within this time.
    Interval(Duration),
    /// Nothing is promised beyond the life of the process.
    None,
}

pub struct DiskBackend {
    path: PathBuf,
    database: Database,
    live: Keyspace,
    history: Keyspace,
    meta: Keyspace,
    durability: Durability,
    compacted: Revision,
}

/// The format this code writes, and the newest it reads.
const FORMAT: u32 = 1;
const FORMAT_FILE: &str = "FORMAT";
const ENGINE_DIRECTORY: &str = "objects";
const DRAFT_PREFIX: &str = "objects.new-";
const REVISION: &[u8] = b"revision";
const COMPACTED: &[u8] = b"compacted";

/// Small on purpose: reads are served from memory, the engine is read at start only.
const CACHE_BYTES: u64 = 4 << 20;
const MEMTABLE_BYTES: u64 = 4 << 20;

/// What a start reads again at most, besides what is stored for good.
const JOURNAL_BYTES: u64 = 64 << 20;

/// History is dropped in batches of this size, so that a compaction never holds up writes for long.
const COMPACT_BATCH: usize = 4_096;

impl DiskBackend {
    /// Opens, or makes, the data in `directory`. Only one process at a time can.
    pub fn open(directory: &Path, durability: Durability) -> Result<Self, BackendError> {
        let io = |attempt, path: &Path| {
            let path = path.display().to_string();
            move |source| BackendError::Io { attempt, path, source: Arc::new(source) }
        };
        fs::create_dir_all(directory).map_err(io("create", directory))?;
        check_format(directory)?;
        let path = directory.join(ENGINE_DIRECTORY);
        if !path.exists() {
            create(directory, &path)?;
        }
        let (database, [live, history, meta]) = engine(&path)?;
        remove_drafts(directory).map_err(io("tidy", directory))?;
        let compacted = Revision::default();
        Ok(Self { path, database, live, history, meta, durability, compacted })
    }

    fn failed(&self, attempt: &'static str) -> impl Fn(fjall::Error) -> BackendError {
        let path = self.path.clone();
        move |error| engine_error(&path, attempt, error)
    }

    fn damaged(&self, what: String) -> BackendError {
        BackendError::Damaged { path: self.path.display().to_string(), what }
    }

    fn meta_number(&self, key: &[u8]) -> Result<u64, BackendError> {
        let found = self.meta.get(key).map_err(self.failed("read"))?;
        match found {
            None => Ok(0),
            Some(bytes) => number(&bytes).map(|(value, _)| value).ok_or_else(|| {
                self.damaged(format!("{} is not a number", String::from_utf8_lossy(key)))
            }),
        }
    }
}

/// Makes an empty engine under another name and moves it to its place whole: a process that is
/// killed on the way leaves nothing behind that cannot be opened.
fn create(directory: &Path, path: &Path) -> Result<(), BackendError> {
    let draft = directory.join(format!("{DRAFT_PREFIX}{}", std::process::id()));
    drop(engine(&draft)?);
    let moved = fs::rename(&draft, path).and_then(|()| fs::File::open(directory)?.sync_all());
    // Another process may have been first; then its lock says so.
    moved.or_else(|source| if path.exists() { Ok(()) } else { Err(source) }).map_err(|source| {
        let path = path.display().to_string();
        BackendError::Io { attempt: "create", path, source: Arc::new(source) }
    })
}

/// Removes what processes that were killed while they made an engine have left.
fn remove_drafts(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(DRAFT_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Opens, or makes, the engine in `path` with its three keyspaces: live, history and meta.
fn engine(path: &Path) -> Result<(Database, [Keyspace; 3]), BackendError> {
    let opening = || {
        let builder = Database::builder(path).cache_size(CACHE_BYTES);
        builder.max_journaling_size(JOURNAL_BYTES).worker_threads(1).open()
    };
    // The engine gives up on some logs that make no sense, instead of saying so.
    let opened = catch_unwind(AssertUnwindSafe(opening)).map_err(|_| {
        let what = "its log makes no sense".to_owned();
        BackendError::Damaged { path: path.display().to_string(), what }
    })?;
    let database = opened.map_err(|error| engine_error(path, "open the data in", error))?;
    let keyspace = |name: &str| {
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        database
            .keyspace(name, options)
            .map_err(|error| engine_error(path, "open the data in", error))
    };
    let keyspaces = [keyspace("live")?, keyspace("history")?, keyspace("meta")?];
    Ok((database, keyspaces))
}

impl Backend for DiskBackend {
    fn write(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        let Some(last) = batch.last() else { return Ok(()) };
        let mut out = self.database.batch().durability(Some(PersistMode::Buffer));
        for record in batch {
            let key = record.key.encode().map_err(|error| self.damaged(error.to_string()))?;
            out.insert(&self.history, record.revision.0.to_be_bytes(), encode_record(record, &key));
            if record.change == Change::Deleted {
                out.remove(&self.live, key);
            } else {
                let value = encode_live(record.created, record.revision, &record.value);
                out.insert(&self.live, key, value);
            }
        }
        out.insert(&self.meta, REVISION, last.revision.0.to_be_bytes());
        out.commit().map_err(self.failed("commit"))
    }

    fn sync(&mut self) -> Result<(), BackendError> {
        match self.durability {
            Durability::Sync => {
                self.database.persist(PersistMode::SyncData).map_err(self.failed("commit"))
            }
            Durability::Interval(_) | Durability::None => Ok(()),
        }
    }

    fn log_bytes(&self) -> u64 {
        self.database.journal_disk_space().unwrap_or(0)
    }

    fn load(&mut self) -> Result<Loaded, BackendError> {
        let revision = Revision(self.meta_number(REVISION)?);
        self.compacted = Revision(self.meta_number(COMPACTED)?);
        let mut loaded = Loaded { revision, compacted: self.compacted, ..Loaded::default() };
        for pair in self.live.iter() {
            let (key, value) = pair.into_inner().map_err(self.failed("read"))?;
            let live = decode_live(&key, &value);
            loaded
                .live
                .push(live.ok_or_else(|| self.damaged(format!("object {key:?} cannot be read")))?);
        }
        for pair in self.history.iter() {
            let (key, value) = pair.into_inner().map_err(self.failed("read"))?;
            let record = decode_record(&key, &value);
            let record =
                record.ok_or_else(|| self.damaged(format!("event {key:?} cannot be read")))?;
            if record.revision > self.compacted {
                loaded.history.push(record);
            }
        }
        match flaw(&loaded) {
            Some(what) => Err(self.damaged(what)),
            None => Ok(loaded),
        }
    }

    fn compact(&mut self, revision: Revision) -> Result<(), BackendError> {
        // The mark first: a crash in between leaves events that load ignores.
        self.meta.insert(COMPACTED, revision.0.to_be_bytes()).map_err(self.failed("compact"))?;
        let until = revision.next().0.to_be_bytes();
        loop {
            let old = self.history.range(..until).take(COMPACT_BATCH);
            let keys: Result<Vec<_>, _> = old.map(fjall::Guard::key).collect();
            let keys = keys.map_err(self.failed("compact"))?;
            let mut out = self.database.batch().durability(Some(PersistMode::Buffer));
            let more = keys.len() == COMPACT_BATCH;
            for key in keys {
                out.remove(&self.history, key);
            }
            out.commit().map_err(self.failed("compact"))?;
            if !more {
                self.compacted = revision;
                return Ok(());
            }
        }
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        self.database.persist(PersistMode::SyncAll).map_err(self.failed("flush"))
    }
}

impl std::fmt::Debug for DiskBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskBackend").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Refuses what this code does not know, before anything is opened or changed.
fn check_format(directory: &Path) -> Result<(), BackendError> {
    let file = directory.join(FORMAT_FILE);
    let path = directory.display().to_string();
    let io = |attempt| {
        let path = file.display().to_string();
        move |source| BackendError::Io { attempt, path, source: Arc::new(source) }
    };
    match fs::read_to_string(&file) {
        Ok(text) => match text.trim().parse::<u32>() {
            Ok(found) if found <= FORMAT => Ok(()),
            Ok(found) => Err(BackendError::NewerFormat { path, found, known: FORMAT }),
            Err(_) => {
                Err(BackendError::Damaged { path, what: format!("{FORMAT_FILE} reads {text:?}") })
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if directory.join(ENGINE_DIRECTORY).exists() {
                return Err(BackendError::Foreign { path, found: ENGINE_DIRECTORY.to_owned() });
            }
            fs::write(&file, format!("{FORMAT}\n")).map_err(io("write"))?;
            fs::File::open(&file).and_then(|file| file.sync_all()).map_err(io("sync"))
        }
        Err(error) => Err(io("read")(error)),
    }
}

fn engine_error(path: &Path, attempt: &'static str, error: fjall::Error) -> BackendError {
    let shown = path.display().to_string();
    match error {
        fjall::Error::Locked => BackendError::InUse { path: shown },
        fjall::Error::Io(source) => {
            BackendError::Io { attempt, path: shown, source: Arc::new(source) }
        }
        error @ (fjall::Error::JournalRecovery(_)
        | fjall::Error::InvalidVersion(_)
        | fjall::Error::InvalidTrailer
        | fjall::Error::InvalidTag(_)
        | fjall::Error::Unrecoverable
        | fjall::Error::Decompress(_)) => {
            BackendError::Damaged { path: shown, what: error.to_string() }
        }
        error => BackendError::Engine { attempt, source: Arc::new(error) },
    }
}
