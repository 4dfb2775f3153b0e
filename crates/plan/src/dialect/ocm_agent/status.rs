//! Status objects as they should read.

pub(crate) mod applied_work;
pub(crate) mod manifest;
pub(crate) mod work;
