//! Objects of the fleet read into domain types. Beside `write`, `status` and `validate`, nobody else
//! knows where a field lies.

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
