//! Writes: decisions of placements, and works of replica sets.

pub(crate) mod decision;
mod order;
pub(crate) mod work;
