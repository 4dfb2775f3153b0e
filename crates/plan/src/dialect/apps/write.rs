//! What a step writes.

pub(super) mod new_set;
