//! Status objects as they should read.

pub(crate) mod binding;
pub(crate) mod eviction;
pub(crate) mod membership;
pub(crate) mod policy;
pub(crate) mod rollup;
pub(crate) mod run;
