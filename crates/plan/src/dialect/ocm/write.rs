//! Writes: decisions of placements, works of replica sets, what a managed cluster gets on the hub.

pub(crate) mod completed;
pub(crate) mod decision;
pub(crate) mod intervention;
mod order;
pub(crate) mod permissions;
pub(crate) mod registration;
pub(crate) mod rights;
pub(crate) mod work;
