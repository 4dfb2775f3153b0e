//! Status objects.

pub mod binding;
pub mod policy;
pub mod rollup;
