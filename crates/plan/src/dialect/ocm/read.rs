//! The dialect's objects as domain types: the only place that knows where their fields are.

pub(crate) mod decisions;
pub(crate) mod placement;
pub(crate) mod strategy;
pub(crate) mod work;
pub(crate) mod work_status;
