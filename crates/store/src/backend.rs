//! The durable backend below the store. The store itself knows nothing of files.

mod aside;
mod directory;
mod disk;
mod engine;
mod journal;
mod manifest;
mod mark;
mod options;
mod record;
mod sound;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{Change, Revision};
use crate::key::Key;

pub use disk::DiskBackend;
pub use options::{Durability, OnLoss};

/// Below the store: takes batches, gives everything back at start.
pub trait Backend: Send + 'static {
    /// Hands a batch to the system, whole or not at all.
    fn write(&mut self, batch: &[Record]) -> Result<(), BackendError>;

    /// Makes earlier writes durable before they are acknowledged.
    fn sync(&mut self) -> Result<(), BackendError>;

    /// Makes a batch durable, whole or not at all. After an error nothing more is asked of it:
    /// whether the batch would survive is unknown.
    fn commit(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        self.write(batch)?;
        self.sync()
    }

    /// What the log takes that a start would read again; zero where there is none.
    fn log_bytes(&self) -> u64 {
        0
    }

    /// Everything that is stored.
    fn load(&mut self) -> Result<Loaded, BackendError>;

    /// Forgets the history up to and including a revision. What is live stays.
    fn compact(&mut self, revision: Revision) -> Result<(), BackendError>;

    /// Makes everything durable that a relaxed durability left open.
    fn flush(&mut self) -> Result<(), BackendError>;

    /// Records how far everything is durable, so that a later start misses what is lost. Called
    /// when there is nothing else to do.
    fn seal(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    /// Begins anew after [`BackendError::Unavailable`]. Returns the events after `published` that
    /// are durable all the same: of a write that failed, nobody knows before.
    fn recover(&mut self, published: Revision) -> Result<Vec<Record>, BackendError>;
}

/// One event in its durable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub revision: Revision,
    pub change: Change,
    pub key: Key,
    /// When the object came to be.
    pub created: Revision,
    /// The value written; of a deletion, the last one.
    pub value: Bytes,
    /// What stood there before, with the revision it was written at; none for a creation.
    pub previous: Option<(Revision, Bytes)>,
}

/// One object in its durable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    pub key: Key,
    pub created: Revision,
    pub modified: Revision,
    pub value: Bytes,
}

/// What a backend holds.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    pub revision: Revision,
    /// History up to and including this revision is gone.
    pub compacted: Revision,
    pub live: Vec<Live>,
    /// In revision order.
    pub history: Vec<Record>,
}

/// Why the durable layer failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BackendError {
    #[error("{path} is in use by another process")]
    InUse { path: String },
    #[error(
        "{path} holds data of format {found}, this program knows {known} and older: nothing was touched"
    )]
    NewerFormat { path: String, found: u32, known: u32 },
    #[error(
        "{path} is not a data directory of Convoy: it holds {found:?} and no format file; nothing was touched"
    )]
    Foreign { path: String, found: String },
    #[error("could not {attempt} {path}")]
    Io {
        attempt: &'static str,
        path: String,
        #[source]
        source: Arc<std::io::Error>,
    },
    /// Passes: [`Backend::recover`] may succeed later.
    #[error("could not {attempt} {path}; writes are refused until this is possible again")]
    Unavailable {
        attempt: &'static str,
        path: String,
        #[source]
        source: Arc<std::io::Error>,
    },
    #[error("the data in {path} is damaged: {what}; nothing was changed")]
    Damaged { path: String, what: String },
    #[error("could not {attempt}")]
    Engine {
        attempt: &'static str,
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl BackendError {
    /// Whether it may pass without a new start.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

/// An error of the system, with what was attempted.
fn file_error(
    attempt: &'static str,
    path: &Path,
) -> impl Fn(std::io::Error) -> BackendError + use<> {
    let path = path.display().to_string();
    move |source| BackendError::Io { attempt, path: path.clone(), source: Arc::new(source) }
}
