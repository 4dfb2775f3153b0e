//! Decisions as writes: the actions that carry out what `decide` returns.

pub(crate) mod binding;
pub(crate) mod cleanup;
pub(crate) mod eviction;
pub(crate) mod intervention;
pub(crate) mod membership;
pub(crate) mod override_patch;
pub(crate) mod override_snapshot;
pub(crate) mod permissions;
pub(crate) mod policy_snapshot;
pub(crate) mod profile;
pub(crate) mod rollout;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod snapshot;
pub(crate) mod work;
pub(crate) mod work_content;
