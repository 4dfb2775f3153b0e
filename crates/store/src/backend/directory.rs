//! The directory of a store: its format, its manifest, its engine. Compares what is there with
//! what has to be there, before the engine opens and changes anything.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::engine::{Engine, missing_part};
use super::journal::survey;
use super::manifest::{Found, MANIFEST_FILE, Manifest, Seal};
use super::options::OnLoss;
use super::{BackendError, aside, file_error};
use crate::entry::Revision;

/// The format this code writes, and the newest it reads. 1 had no manifest and no marks.
const FORMAT: u32 = 2;
const FORMAT_FILE: &str = "FORMAT";
const ENGINE_DIRECTORY: &str = "objects";
const DRAFT_PREFIX: &str = "objects.new-";

/// A directory that is ready to be loaded.
pub(super) struct Opened {
    pub(super) engine: Engine,
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
    /// What has to be found at least.
    pub(super) durable: Revision,
    /// Whether something is lost, and that was accepted.
    pub(super) has_losses: bool,
    /// Whether its format is an older one, to be raised once it is loaded.
    pub(super) is_older: bool,
}

struct Opening<'d> {
    directory: &'d Path,
    path: PathBuf,
    on_loss: OnLoss,
    has_losses: bool,
}

/// Opens, or makes, the data in `directory`.
pub(super) fn open(directory: &Path, on_loss: OnLoss) -> Result<Opened, BackendError> {
    let mut builder = fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(file_error("create", directory))?;
    let path = directory.join(ENGINE_DIRECTORY);
    let format = format(directory)?;
    let mut opening = Opening { directory, path, on_loss, has_losses: false };
    let manifest = opening.manifest(format)?;
    if format.is_none() {
        write_format(directory)?;
    }
    let durable = opening.prepare(&manifest.seal())?;
    let engine = match Engine::open(&opening.path) {
        Err(BackendError::Damaged { what, .. }) => {
            opening.lose(what)?;
            opening.replace()?;
            Engine::open(&opening.path)?
        }
        opened => opened?,
    };
    remove_drafts(directory).map_err(file_error("tidy", directory))?;
    let Opening { path, has_losses, .. } = opening;
    let is_older = format.is_some_and(|format| format < FORMAT);
    Ok(Opened { engine, path, manifest, durable, has_losses, is_older })
}

impl Opening<'_> {
    /// Opens the manifest; makes one where none is expected.
    fn manifest(&mut self, format: Option<u32>) -> Result<Manifest, BackendError> {
        let found = Manifest::open(self.directory)
            .map_err(file_error("open", &self.directory.join(MANIFEST_FILE)))?;
        let (mut manifest, exists) = match found {
            Found::Whole(manifest) => return Ok(manifest),
            Found::InUse => {
                return Err(BackendError::InUse { path: self.path.display().to_string() });
            }
            Found::Unknown { manifest, exists } => (manifest, exists),
        };
        if format == Some(FORMAT) {
            let state = if exists { "cannot be read" } else { "is missing" };
            let lost = self.lose(format!(
                "{MANIFEST_FILE} {state}, so it is unknown how much there should be"
            ));
            if lost.is_err() && !exists {
                // Opening has made it.
                fs::remove_file(manifest.path()).map_err(file_error("remove", manifest.path()))?;
            }
            lost?;
        }
        let path = manifest.path().to_owned();
        manifest.write(Seal::default()).map_err(file_error("write", &path))?;
        Ok(manifest)
    }

    /// Looks at the engine's files; what has to be found in them at least.
    fn prepare(&mut self, seal: &Seal) -> Result<Revision, BackendError> {
        let name = self.path.display().to_string();
        if !self.path.exists() {
            if seal.revision > Revision(0) {
                self.lose(format!("{name} is missing"))?;
            }
            create(self.directory, &self.path)?;
            return Ok(seal.revision);
        }
        if let Some(part) = missing_part(&self.path) {
            self.lose(format!("{} is missing", part.display()))?;
            self.replace()?;
            return Ok(seal.revision);
        }
        let io = file_error("read the log in", &self.path);
        let survey = survey(&self.path, seal).map_err(io)?;
        let io = file_error("cut the log in", &self.path);
        if let Some(flaw) = survey.flaw {
            self.lose(flaw.what.clone())?;
            aside::cut_at(self.directory, &flaw).map_err(io)?;
        } else if let Some((log, end)) = survey.torn {
            aside::cut(&log, end).map_err(io)?;
        }
        Ok(seal.revision.max(survey.durable))
    }

    /// Refuses what is lost, or says it and goes on.
    fn lose(&mut self, what: String) -> Result<(), BackendError> {
        match self.on_loss {
            OnLoss::Refuse => {
                Err(BackendError::Damaged { path: self.directory.display().to_string(), what })
            }
            OnLoss::Accept => {
                tracing::warn!(what, "the data is damaged, and the loss is accepted");
                self.has_losses = true;
                Ok(())
            }
        }
    }

    /// Puts an engine that cannot be opened aside, and an empty one in its place.
    fn replace(&self) -> Result<(), BackendError> {
        let io = file_error("put aside", &self.path);
        let place = aside::put_aside(self.directory, &self.path).map_err(io)?;
        tracing::warn!(kept_in = %place.display(), "the data cannot be opened: it is put aside");
        create(self.directory, &self.path)
    }
}

/// Makes an empty engine under another name and moves it to its place whole: a process that is
/// killed on the way leaves nothing behind that cannot be opened.
fn create(directory: &Path, path: &Path) -> Result<(), BackendError> {
    let draft = directory.join(format!("{DRAFT_PREFIX}{}", std::process::id()));
    drop(Engine::open(&draft)?);
    let moved = fs::rename(&draft, path).and_then(|()| fs::File::open(directory)?.sync_all());
    moved.map_err(file_error("create", path))
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

/// The format of a directory; none where nothing is there yet. Refuses what this code does not
/// know, before anything is opened or changed.
fn format(directory: &Path) -> Result<Option<u32>, BackendError> {
    let file = directory.join(FORMAT_FILE);
    let path = directory.display().to_string();
    match fs::read_to_string(&file) {
        Ok(text) => match text.trim().parse::<u32>() {
            Ok(found) if found <= FORMAT => Ok(Some(found)),
            Ok(found) => Err(BackendError::NewerFormat { path, found, known: FORMAT }),
            Err(_) => {
                Err(BackendError::Damaged { path, what: format!("{FORMAT_FILE} reads {text:?}") })
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if directory.join(ENGINE_DIRECTORY).exists() {
                return Err(BackendError::Foreign { path, found: ENGINE_DIRECTORY.to_owned() });
            }
            Ok(None)
        }
        Err(error) => Err(file_error("read", &file)(error)),
    }
}

/// Says that the directory has the format of this code.
pub(super) fn write_format(directory: &Path) -> Result<(), BackendError> {
    let file = directory.join(FORMAT_FILE);
    let draft = directory.join(format!("{FORMAT_FILE}.new"));
    let write = || {
        fs::write(&draft, format!("{FORMAT}\n"))?;
        fs::File::open(&draft)?.sync_all()?;
        fs::rename(&draft, &file)?;
        fs::File::open(directory)?.sync_all()
    };
    write().map_err(file_error("write", &file))
}
