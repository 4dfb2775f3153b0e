//! The durable backend: an embedded LSM engine with an atomic, synced journal below.
//!
//! Three keyspaces: `live` (key to newest version), `history` (revision to event), `meta` (the
//! newest commit's mark, compaction). Each commit is one atomic batch over all three. The engine's
//! caches are kept small: what is live is in memory above.

use std::fs::File;
use std::path::{Path, PathBuf};

use fjall::PersistMode;

use super::directory::{self, Opened};
use super::engine::{Engine, probe, write_error};
use super::journal::newest;
use super::manifest::{Manifest, Seal};
use super::mark::{MARK, Mark, Sum};
use super::options::{Durability, OnLoss};
use super::record::{decode_live, decode_record, encode_live, encode_record, number};
use super::sound::flaw;
use super::{Backend, BackendError, Loaded, Record, file_error};
use crate::entry::{Change, Revision};

pub struct DiskBackend {
    directory: PathBuf,
    path: PathBuf,
    /// None: it stopped, and could not be opened again yet.
    engine: Option<Engine>,
    manifest: Manifest,
    durability: Durability,
    on_loss: OnLoss,
    has_losses: bool,
    is_older: bool,
    /// What has to be found at least.
    durable: Revision,
    /// Of the newest commit.
    mark: Mark,
    compacted: Revision,
    /// Commits since the manifest was written.
    unsealed: u32,
}

/// How a revision without a mark was kept, by format 1.
const REVISION: &[u8] = b"revision";
const COMPACTED: &[u8] = b"compacted";

/// History is dropped in batches of this size, so that a compaction never holds up writes for long.
const COMPACT_BATCH: usize = 4_096;

/// How far the revision jumps when a loss is accepted: far more than is committed between two writes
/// of the manifest, so that no revision is used twice.
const LOSS_BUMP: u64 = 1_000_000;

/// Under load the manifest is written every so many commits: one more sync for so many.
const SEAL_COMMITS: u32 = 512;

impl DiskBackend {
    /// Opens, or makes, the data in `directory`. Only one process at a time can.
    pub fn open(directory: &Path, durability: Durability) -> Result<Self, BackendError> {
        Self::open_with(directory, durability, OnLoss::Refuse)
    }

    /// The same, with a choice about what is lost.
    pub fn open_with(
        directory: &Path,
        durability: Durability,
        on_loss: OnLoss,
    ) -> Result<Self, BackendError> {
        let Opened { engine, path, manifest, durable, has_losses, is_older } =
            directory::open(directory, on_loss)?;
        Ok(Self {
            directory: directory.to_owned(),
            path,
            engine: Some(engine),
            manifest,
            durability,
            on_loss,
            has_losses,
            is_older,
            durable,
            mark: Mark::default(),
            compacted: Revision::default(),
            unsealed: 0,
        })
    }

    fn engine(&self) -> Result<&Engine, BackendError> {
        self.engine.as_ref().ok_or_else(|| self.write_failed("write to")(fjall::Error::Poisoned))
    }

    fn write_failed(&self, attempt: &'static str) -> impl Fn(fjall::Error) -> BackendError + use<> {
        let path = self.path.clone();
        move |error| write_error(&path, attempt, error)
    }

    /// Everything that can be read, with the newest mark.
    fn read(&mut self) -> Result<(Loaded, Option<Mark>), BackendError> {
        let engine = self.engine()?;
        let mark = engine.mark()?;
        let revision = match mark {
            Some(mark) => mark.revision,
            None => meta_number(engine, REVISION)?,
        };
        let compacted = meta_number(engine, COMPACTED)?;
        let mut loaded = Loaded { revision, compacted, ..Loaded::default() };
        for pair in engine.live.iter() {
            let (key, value) = pair.into_inner().map_err(engine.failed("read"))?;
            let live = decode_live(&key, &value);
            let live =
                live.ok_or_else(|| engine.damaged(format!("object {key:?} cannot be read")))?;
            loaded.live.push(live);
        }
        for pair in engine.history.iter() {
            let (key, value) = pair.into_inner().map_err(engine.failed("read"))?;
            let record = decode_record(&key, &value);
            let record =
                record.ok_or_else(|| engine.damaged(format!("event {key:?} cannot be read")))?;
            if record.revision > compacted {
                loaded.history.push(record);
            }
        }
        self.compacted = compacted;
        Ok((loaded, mark))
    }

    /// How what was loaded falls short of what was durable, if it does.
    fn shortfall(&self, loaded: &Loaded, mark: Option<Mark>) -> Option<String> {
        let (revision, objects) = (loaded.revision, loaded.live.len());
        if revision < self.durable {
            let lost = self.durable.0 - revision.0;
            let sealed = self.manifest.seal();
            let then = if sealed.revision == self.durable {
                format!(" with {} objects", sealed.objects)
            } else {
                String::new()
            };
            return Some(format!(
                "it ends at revision {revision} with {objects} objects, but revision {}{then} was \
                 durable: {lost} revisions are lost",
                self.durable
            ));
        }
        let mark = mark?;
        (Sum::of(&loaded.live) != mark.sum).then(|| {
            let then = mark.sum.objects;
            format!("it has {objects} objects at revision {revision}, and not the {then} written")
        })
    }

    /// Goes on with the objects that are there, at a revision that nobody has seen and without
    /// history: whoever watches has to list again.
    fn salvage(&mut self, mut loaded: Loaded) -> Result<Loaded, BackendError> {
        let newest = loaded.live.iter().map(|live| live.modified).max().unwrap_or_default();
        let known = [loaded.revision, loaded.compacted, self.durable, newest];
        let revision =
            Revision(known.map(|known| known.0).into_iter().max().unwrap_or(0) + LOSS_BUMP);
        let sum = Sum::of(&loaded.live);
        let sealed = self.manifest.seal();
        tracing::warn!(
            objects = sum.objects,
            objects_before = sealed.objects,
            revision = loaded.revision.0,
            revision_before = self.durable.0,
            next_revision = revision.0,
            "continuing with the objects that are left; deleted ones may be back, and changed \
             ones may be of an older version"
        );
        self.mark = Mark { previous: Revision(0), revision, sum };
        let mark = self.mark.encode();
        let engine = self.engine()?;
        engine.meta.insert(MARK, mark).map_err(engine.failed("write to"))?;
        self.compact(revision)?;
        loaded.history.clear();
        (loaded.revision, loaded.compacted) = (revision, revision);
        Ok(loaded)
    }

    /// Writes the manifest: everything up to the newest mark is durable.
    fn write_manifest(&mut self) -> Result<(), BackendError> {
        let io = file_error("write", self.manifest.path());
        let before = self.manifest.seal();
        // Listing takes a file descriptor; without one, the number before stands.
        let log = newest(&self.path).unwrap_or(before.log).max(before.log);
        let seal = Seal {
            revision: self.mark.revision,
            objects: self.mark.sum.objects,
            log,
            is_synced: self.durability == Durability::Sync,
        };
        self.unsealed = 0;
        if seal == before {
            return Ok(());
        }
        if log != before.log {
            // A start looks for this file: its name has to be durable.
            File::open(&self.path).and_then(|path| path.sync_all()).map_err(&io)?;
        }
        self.manifest.write(seal).map_err(io)
    }
}

impl Backend for DiskBackend {
    fn write(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        let Some(last) = batch.last() else { return Ok(()) };
        let engine = self.engine()?;
        let mut out = engine.database.batch().durability(Some(PersistMode::Buffer));
        let mut sum = self.mark.sum;
        for record in batch {
            let key = record.key.encode().map_err(|error| engine.damaged(error.to_string()))?;
            sum.follow(record, &key);
            let value = encode_record(record, &key);
            out.insert(&engine.history, record.revision.0.to_be_bytes(), value);
            if record.change == Change::Deleted {
                out.remove(&engine.live, key);
            } else {
                let value = encode_live(record.created, record.revision, &record.value);
                out.insert(&engine.live, key, value);
            }
        }
        // The last of the batch: where it stands in the log, the batch was written to its end.
        let mark = Mark { previous: self.mark.revision, revision: last.revision, sum };
        out.insert(&engine.meta, MARK, mark.encode());
        out.commit().map_err(self.write_failed("commit to"))?;
        self.mark = mark;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), BackendError> {
        if self.durability != Durability::Sync {
            return Ok(());
        }
        let engine = self.engine()?;
        engine.database.persist(PersistMode::SyncData).map_err(self.sync_failed())?;
        self.unsealed += 1;
        if self.unsealed >= SEAL_COMMITS
            && let Err(error) = self.write_manifest()
        {
            warn_unsealed(&error);
        }
        Ok(())
    }

    fn log_bytes(&self) -> u64 {
        self.engine.as_ref().map_or(0, |engine| engine.database.journal_disk_space().unwrap_or(0))
    }

    fn load(&mut self) -> Result<Loaded, BackendError> {
        let (loaded, mark) = self.read()?;
        let what = flaw(&loaded).or_else(|| self.shortfall(&loaded, mark));
        let is_lossy = what.is_some() || self.has_losses;
        let loaded = match (what, self.on_loss) {
            (Some(what), OnLoss::Refuse) => {
                let path = self.directory.display().to_string();
                return Err(BackendError::Damaged { path, what });
            }
            (Some(what), OnLoss::Accept) => {
                tracing::warn!(what, "the data is damaged, and the loss is accepted");
                self.salvage(loaded)?
            }
            (None, _) if is_lossy => self.salvage(loaded)?,
            (None, _) => {
                let sum = Sum::of(&loaded.live);
                let unmarked = Mark { previous: loaded.revision, revision: loaded.revision, sum };
                self.mark = mark.unwrap_or(unmarked);
                loaded
            }
        };
        if self.is_older {
            let engine = self.engine()?;
            let mark = self.mark.encode();
            engine.meta.insert(MARK, mark).map_err(engine.failed("write to"))?;
        }
        if is_lossy || self.is_older {
            let engine = self.engine()?;
            engine.database.persist(PersistMode::SyncAll).map_err(engine.failed("sync"))?;
        }
        self.write_manifest()?;
        if self.is_older {
            directory::write_format(&self.directory)?;
            self.is_older = false;
        }
        Ok(loaded)
    }

    fn compact(&mut self, revision: Revision) -> Result<(), BackendError> {
        let engine = self.engine()?;
        let failed = self.write_failed("compact");
        // The mark first: a crash in between leaves events that load ignores.
        engine.meta.insert(COMPACTED, revision.0.to_be_bytes()).map_err(&failed)?;
        let until = revision.next().0.to_be_bytes();
        loop {
            let old = engine.history.range(..until).take(COMPACT_BATCH);
            let keys: Result<Vec<_>, _> = old.map(fjall::Guard::key).collect();
            let keys = keys.map_err(&failed)?;
            let mut out = engine.database.batch().durability(Some(PersistMode::Buffer));
            let more = keys.len() == COMPACT_BATCH;
            for key in keys {
                out.remove(&engine.history, key);
            }
            out.commit().map_err(&failed)?;
            if !more {
                self.compacted = revision;
                return Ok(());
            }
        }
    }

    fn flush(&mut self) -> Result<(), BackendError> {
        let engine = self.engine()?;
        engine.database.persist(PersistMode::SyncAll).map_err(self.sync_failed())?;
        if let Err(error) = self.write_manifest() {
            warn_unsealed(&error);
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), BackendError> {
        match self.durability {
            Durability::Sync => self.write_manifest(),
            // The next flush does it; without one nothing is durable.
            Durability::Interval(_) | Durability::None => Ok(()),
        }
    }

    fn recover(&mut self, published: Revision) -> Result<Vec<Record>, BackendError> {
        probe(&self.path).map_err(|error| self.write_failed("write to")(error.into()))?;
        // Closed first: it holds a lock.
        self.engine = None;
        let engine = Engine::open(&self.path).map_err(|error| transient(&self.path, error))?;
        let mark = engine.mark()?.unwrap_or_default();
        if mark.revision < published {
            let found = mark.revision;
            return Err(engine.damaged(format!("it ends at {found}, {published} was durable")));
        }
        engine.database.persist(PersistMode::SyncAll).map_err(self.sync_failed())?;
        let mut records = Vec::new();
        for pair in engine.history.range(published.next().0.to_be_bytes()..) {
            let (key, value) = pair.into_inner().map_err(engine.failed("read"))?;
            let record = decode_record(&key, &value);
            records.push(record.ok_or_else(|| engine.damaged(format!("event {key:?}")))?);
        }
        (self.mark, self.engine) = (mark, Some(engine));
        Ok(records)
    }
}

impl DiskBackend {
    /// A sync that failed does not pass: the system may have dropped what it could not write, and
    /// a second sync would not tell.
    fn sync_failed(&self) -> impl Fn(fjall::Error) -> BackendError + use<> {
        let path = self.path.clone();
        move |error| match error {
            fjall::Error::Io(source) => file_error("sync", &path)(source),
            other => write_error(&path, "sync", other),
        }
    }
}

impl std::fmt::Debug for DiskBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskBackend").field("path", &self.path).finish_non_exhaustive()
    }
}

fn meta_number(engine: &Engine, key: &[u8]) -> Result<Revision, BackendError> {
    let found = engine.meta.get(key).map_err(engine.failed("read"))?;
    let Some(bytes) = found else { return Ok(Revision::default()) };
    let (value, _) = number(&bytes).ok_or_else(|| {
        engine.damaged(format!("{} is not a number", String::from_utf8_lossy(key)))
    })?;
    Ok(Revision(value))
}

/// An error of opening the engine again, as one of writing to it.
fn transient(path: &Path, error: BackendError) -> BackendError {
    match error {
        BackendError::Io { source, .. } => {
            let again = std::io::Error::new(source.kind(), source.to_string());
            let same = source.raw_os_error().map(std::io::Error::from_raw_os_error);
            write_error(path, "open the data in", fjall::Error::Io(same.unwrap_or(again)))
        }
        other => other,
    }
}

/// The data is safe, but a later start would not miss it.
fn warn_unsealed(error: &BackendError) {
    tracing::warn!(error = error as &dyn std::error::Error, "could not update the manifest");
}
