//! Which rollout, and whose.

use convoy_api::ObjectKey;

/// A rollout and the dialect that decides about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rollout {
    /// Index into the dialects of the cache.
    pub dialect: usize,
    pub key: ObjectKey,
}
