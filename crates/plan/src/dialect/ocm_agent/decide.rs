//! What happens next on one managed cluster: to the objects of its works, and to the works that
//! are gone from the hub.
//!
//! Budgets were spent on the hub, before a work was written; here nothing waits but for objects
//! that are being deleted, and for the end of a grace period.

pub(crate) mod applied_work;
pub(crate) mod manifest;
pub(crate) mod removal;
pub(crate) mod work;
