//! Objects as the engine sees them: defaults filled in, numbers resolved, once.

pub(super) mod deployment;
pub(super) mod owned_set;
pub(super) mod pod;
