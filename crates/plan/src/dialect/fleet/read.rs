//! Objects of the fleet as domain types. Nothing above this module knows where a field lies,
//! except what writes objects and what validates them.

pub(crate) mod binding;
pub(crate) mod budget;
pub(crate) mod eviction;
pub(crate) mod member;
pub(crate) mod member_report;
pub(crate) mod options;
pub(crate) mod overrides;
pub(crate) mod placement;
pub(crate) mod policy;
pub(crate) mod policy_snapshot;
pub(crate) mod resource_selector;
pub(crate) mod run;
pub(crate) mod run_times;
pub(crate) mod snapshot;
pub(crate) mod strategy;
pub(crate) mod work;
