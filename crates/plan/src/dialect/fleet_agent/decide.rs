//! What happens next on one member: to the objects of its Works, and to its membership.
//!
//! Budgets were spent on the hub, before a Work was written; here nothing waits but for objects
//! that belong to somebody else or were changed by somebody else.

pub(crate) mod manifest;
pub(crate) mod membership;
pub(crate) mod owners;
pub(crate) mod work;
pub(crate) mod writing;
