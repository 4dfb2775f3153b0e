//! Works and the objects on the member as domain types.

pub(crate) mod comparison;
pub(crate) mod desired;
pub(crate) mod immutable;
pub(crate) mod internal;
pub(crate) mod manifest;
pub(crate) mod provider;
pub(crate) mod recorded;
pub(crate) mod reported;
pub(crate) mod strategy;
pub(crate) mod timings;
