//! What placements and replica sets say about themselves.

pub(crate) mod placement;
pub(crate) mod replica_set;
