//! How many nodes can be picked at once: as many as the Skyhook's status has room to name.
//!
//! A picked node is named there before anything is done to it, so that its slot outlives a
//! restart, a pause and whatever status word the node then carries. No object may grow with the
//! fleet, so the record is bounded; a batch that would exceed it begins with what fits.

use smol_str::SmolStr;

use crate::count;
use crate::gate::{Candidate, Limit};
use crate::hold::NAMED;

/// How many bytes of a status name picked nodes: half of what any object may have, which is
/// about ten thousand nodes of usual names.
const RECORD_BYTES: usize = 500_000;
/// What an entry has beside the name: quotes, colon, comma and an instant.
const ENTRY_BYTES: usize = 30;

/// The record of picked nodes as it fills up.
#[derive(Debug, Default)]
pub(crate) struct PickRecord {
    bytes: usize,
    nodes: u32,
    first: Vec<SmolStr>,
}

impl PickRecord {
    /// Names a node, if there is room for it.
    pub(crate) fn take(&mut self, node: &str) -> bool {
        let Some(bytes) = with(self.bytes, node) else { return false };
        self.bytes = bytes;
        self.nodes = self.nodes.saturating_add(1);
        if self.first.len() < NAMED {
            self.first.push(SmolStr::new(node));
        }
        true
    }

    /// How many of `candidates`, in their order, can be named.
    pub(crate) fn limit(&self, candidates: &[Candidate<'_>]) -> Limit {
        let mut bytes = self.bytes;
        let fits = candidates.iter().filter(|candidate| candidate.obstacle.is_none()).take_while(
            |candidate| match with(bytes, candidate.member.name) {
                Some(more) => {
                    bytes = more;
                    true
                }
                None => false,
            },
        );
        let ceiling = self.nodes.saturating_add(count(fits.count()));
        Limit::slots("the record of picked nodes", self.nodes, ceiling, self.first.iter().cloned())
    }
}

/// The bytes of a record that names one more node; none if that is too much.
fn with(bytes: usize, node: &str) -> Option<usize> {
    Some(bytes + node.len() + ENTRY_BYTES).filter(|bytes| *bytes <= RECORD_BYTES)
}
