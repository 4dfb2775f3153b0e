//! Status objects as they should read.

pub mod binding;
pub mod eviction;
pub mod membership;
pub mod policy;
pub mod rollup;
pub mod run;
