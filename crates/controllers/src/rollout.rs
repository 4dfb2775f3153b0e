//! Which rollout, and whose.

use convoy_api::{GroupKind, ObjectKey};

/// A rollout and the dialect that decides about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rollout {
    /// Index into the dialects of the cache.
    pub dialect: usize,
    pub key: ObjectKey,
}

impl Rollout {
    /// Stands for what a dialect needs whether or not there is a rollout: no object has this key.
    pub(crate) fn standing(dialect: usize) -> Self {
        Self { dialect, key: GroupKind::new("", "").key("", "") }
    }

    pub(crate) fn is_standing(&self) -> bool {
        self.key.kind.kind.is_empty()
    }
}
