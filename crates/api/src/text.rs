//! The small languages inside fields: Go durations, Kubernetes names, quantities, and counts that
//! may be percentages; and which word somebody who mistyped one meant.

pub mod count_or_percent;
pub mod duration;
pub(crate) mod format;
pub mod name;
pub mod quantity;
pub mod similar;

pub use count_or_percent::CountOrPercent;
pub use duration::GoDuration;
pub use name::Name;
pub use quantity::Quantity;
