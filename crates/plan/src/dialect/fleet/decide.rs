//! What happens next.

pub mod available;
pub mod cleanup;
pub mod eviction;
pub mod membership;
pub mod override_history;
pub mod rollout;
pub mod schedule;
pub mod selection;
pub mod staged;
