//! Decisions as steps: groups, holds, the summary that plans print.

pub(crate) mod replica_set;
