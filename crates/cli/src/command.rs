//! The commands, one module each.

pub(crate) mod plan;
