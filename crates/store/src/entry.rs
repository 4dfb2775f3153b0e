//! Stored objects and the events of a watch.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::key::Key;

/// A point in the one order of all writes. The first write has revision 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// The parsed metadata of an object: labels, owners, fields of selectors. Parsed once, when the
/// object is written or loaded, and kept beside its bytes.
pub trait Metadata: fmt::Debug + Send + Sync + 'static {
    fn read(key: &Key, value: &Bytes) -> Self;

    /// The value that watches select by most, besides namespace and name.
    fn mark(&self) -> Option<&str> {
        None
    }
}

/// No metadata.
impl Metadata for () {
    fn read(_key: &Key, _value: &Bytes) -> Self {}
}

/// One version of one object.
#[derive(Debug)]
pub struct Entry<M> {
    pub key: Key,
    /// The revision of its creation.
    pub created: Revision,
    /// The revision of this version.
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
    /// The version that was written; of a deletion, the last version.
    pub entry: Arc<Entry<M>>,
    /// The version before; `None` for a creation.
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
