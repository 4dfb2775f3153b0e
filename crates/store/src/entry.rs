//! Objects as they are stored, and what happened to them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::key::Key;

/// A point in the one order of all writes. The first write has revision 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// What is kept parsed beside an object's bytes: labels, owners, the fields selectors ask for.
/// Made once, when the object is written or loaded.
pub trait Metadata: fmt::Debug + Send + Sync + 'static {
    fn read(key: &Key, value: &Bytes) -> Self;

    /// What watches select by most, besides namespace and name.
    fn mark(&self) -> Option<&str> {
        None
    }
}

/// Nothing is kept parsed.
impl Metadata for () {
    fn read(_key: &Key, _value: &Bytes) -> Self {}
}

/// One version of one object.
#[derive(Debug)]
pub struct Entry<M> {
    pub key: Key,
    /// When the object came to be.
    pub created: Revision,
    /// When this version was written.
    pub modified: Revision,
    pub value: Bytes,
    pub meta: M,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Created,
    Modified,
    Deleted,
}

/// One write, as watchers see it.
#[derive(Debug)]
pub struct Event<M> {
    pub revision: Revision,
    pub change: Change,
    /// What was written; of a deletion, the last version there was.
    pub entry: Arc<Entry<M>>,
    /// What stood there before; none for a creation.
    pub previous: Option<Arc<Entry<M>>>,
}

impl Revision {
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
