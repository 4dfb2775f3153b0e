//! What people do to placements with stock kubectl: both examples of the safe rollout, and the
//! scenarios that upstream tests end to end. What is promised is checked at every recorded
//! change of the bindings, not only at the end.

mod drift;
mod envelopes;
mod eviction;
mod examples;
mod failures;
pub(crate) mod guide;
mod membership;
mod metrics;
mod real;
mod record;
pub(crate) mod site;
mod staged;
mod strategies;
mod untrackable;
