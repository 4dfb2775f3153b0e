//! The writes of the dialect: decisions of placements, and works of replica sets.

pub(crate) mod decision;
pub(crate) mod slice;
