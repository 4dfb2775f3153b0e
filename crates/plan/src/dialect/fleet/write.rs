//! Decisions as writes.

pub mod binding;
pub mod membership;
pub mod override_patch;
pub mod schedule;
