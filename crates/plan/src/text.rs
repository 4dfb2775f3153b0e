//! The small languages inside fields that decisions read: globs, versions, sets of indexes. Those
//! that are part of an API's types are in `convoy_api::text`.

pub(crate) mod glob;
pub(crate) mod indexes;
pub(crate) mod version;
