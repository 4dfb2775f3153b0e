//! How many nodes can be picked at once: as many as the Skyhook's status has room to name.
//!
//! A picked node is named there before anything is done to it, so that its slot outlives a
//! restart, a pause and whatever word the node then carries. No object may grow with the fleet,
//! so that record has an end; a batch that would go beyond it begins with what fits.

use crate::dialect::skyhook::decide::member::Member;

/// How many bytes of a status name picked nodes: half of what any object may have, which is
/// about ten thousand nodes of usual names.
const RECORD_BYTES: usize = 500_000;
/// What an entry has beside the name: quotes, colon, comma and an instant.
const ENTRY_BYTES: usize = 30;

/// Room that is left in the record.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { bytes: RECORD_BYTES }
    }
}

impl Room {
    /// Takes the room of one node, if there is enough.
    pub(crate) fn take(&mut self, member: &Member<'_>) -> bool {
        self.take_bytes(member.node.name().len() + ENTRY_BYTES)
    }

    fn take_bytes(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }
}
