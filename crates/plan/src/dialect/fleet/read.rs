//! Objects of the fleet as domain types. Nothing above this module knows where a field lies,
//! except what writes objects and what validates them.

pub mod binding;
pub mod budget;
pub mod eviction;
pub mod hash;
pub mod member;
pub mod overrides;
pub mod placement;
pub mod policy;
pub mod policy_snapshot;
pub mod resource;
pub mod resource_selector;
pub mod run;
pub mod snapshot;
pub mod strategy;
