//! What placements, replica sets, clusters and their sets say about themselves.

pub(crate) mod placement;
pub(crate) mod registration;
pub(crate) mod replica_set;
