//! Which revisions are deleted.

use std::collections::BTreeSet;

use convoy_api::Object;

use crate::dialect::workloads::names::REVISION_HASH;
use crate::dialect::workloads::read::revisions::Revisions;

/// The oldest revisions beyond the limit, of those that no pod was created from. `live` are names
/// and hashes.
pub(crate) fn expired<'o>(revisions: &Revisions<'o>, live: &BTreeSet<&str>) -> Vec<&'o Object> {
    let is_idle = |revision: &&Object| {
        let hash = revision.label(REVISION_HASH).unwrap_or_default();
        *revision.name() != revisions.name
            && !live.contains(revision.name().as_str())
            && !live.contains(hash)
    };
    let idle: Vec<&Object> = revisions.all.iter().copied().filter(is_idle).collect();
    let excess = idle.len().saturating_sub(usize::try_from(revisions.limit).unwrap_or(0));
    idle.into_iter().take(excess).collect()
}
