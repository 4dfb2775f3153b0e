//! Hashes that have to equal those of other controllers, bit by bit.

pub(crate) mod content;
pub(crate) mod structure;
