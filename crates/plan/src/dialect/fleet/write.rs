//! Decisions as writes: the actions that carry out what `decide` returns.

pub mod binding;
pub mod cleanup;
pub mod eviction;
pub mod finalizer;
pub mod membership;
pub mod override_patch;
pub mod override_snapshot;
pub mod policy_snapshot;
pub mod rollout;
pub mod run;
pub mod schedule;
pub mod snapshot;
